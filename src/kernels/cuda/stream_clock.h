// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/cuda/check.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/make_cuda_backend.h"

namespace kvs::cuda {

/// A DeviceClock with events on the context's stream.
class StreamClock final : public DeviceClock {
 public:
  explicit StreamClock(const Context& context) : context_(context) {}
  void mark() override;
  std::vector<double> seconds() override;

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const noexcept { (void)cudaEventDestroy(event); }
  };
  using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy>;

  const Context& context_;
  std::vector<Event> events_;  // the first `marked_` events are recorded
  std::size_t marked_ = 0;
};

}  // namespace kvs::cuda
