// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation/streams.h"

#include <deque>
#include <memory>
#include <vector>

#include "tests/emulation/grid.h"

struct CUstream_st {
  std::deque<std::function<void()>> work;
  std::size_t queued = 0, done = 0;
  bool alive = true;
};

struct CUevent_st {
  cudaStream_t stream;  // null before it is recorded
  std::size_t place;    // of the stream's work
};

namespace kvs::emulation {
namespace {

/// Streams stay after their end, so that a later use is found.
CUstream_st& alive(cudaStream_t stream) {
  if (stream == nullptr) fail("work on the default stream");
  if (!stream->alive) fail("a stream that was destroyed");
  return *stream;
}

void run_until(cudaStream_t stream, std::size_t place) {
  while (stream->done < place) {
    const std::function<void()> next = std::move(stream->work.front());
    stream->work.pop_front();
    ++stream->done;
    next();
  }
}

}  // namespace

std::recursive_mutex& device_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  const std::lock_guard lock(device_mutex());
  alive(stream).work.push_back(std::move(work));
  ++stream->queued;
}

}  // namespace kvs::emulation

using namespace kvs::emulation;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  static std::vector<std::unique_ptr<CUstream_st>> streams;
  if (flags != cudaStreamNonBlocking) fail("a stream that waits for the default stream");
  const std::lock_guard lock(device_mutex());
  *stream = streams.emplace_back(std::make_unique<CUstream_st>()).get();
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(device_mutex());
  run_until(stream, alive(stream).queued);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const cudaError_t status = cudaStreamSynchronize(stream);
  stream->alive = false;
  return status;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st{};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(device_mutex());
  *event = {stream, alive(stream).queued};
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(device_mutex());
  if (event->stream != nullptr) run_until(event->stream, event->place);
  return cudaSuccess;
}

// Events take no time here; a millisecond avoids a caller's division by zero.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  if (from->stream == nullptr || from->stream != to->stream) fail("a time between events that are not of one stream");
  if (to->stream->done < to->place) fail("a time before the work between two events was waited for");
  *milliseconds = 1;
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->stream != nullptr) enqueue(stream, [recorded = *event] { run_until(recorded.stream, recorded.place); });
  return cudaSuccess;
}

}  // extern "C"
