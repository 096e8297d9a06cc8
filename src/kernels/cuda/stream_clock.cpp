// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/stream_clock.h"

namespace kvs::cuda {

void StreamClock::mark() {
  if (marked_ == events_.size()) {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDefault), "cudaEventCreate");
    events_.emplace_back(event);
  }
  check_cuda(cudaEventRecord(events_[marked_].get(), context_.stream()), "cudaEventRecord");
  ++marked_;
}

std::vector<double> StreamClock::seconds() {
  std::vector<double> times;
  if (marked_ > 0) check_cuda(cudaEventSynchronize(events_[marked_ - 1].get()), "cudaEventSynchronize");
  for (std::size_t n = 1; n < marked_; ++n) {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, events_[n - 1].get(), events_[n].get()), "cudaEventElapsedTime");
    times.push_back(static_cast<double>(milliseconds) / 1e3);
  }
  marked_ = 0;
  return times;
}

}  // namespace kvs::cuda
