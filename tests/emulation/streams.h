// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <mutex>

/// Streams and device memory. Work that is queued on a stream runs when somebody waits for it and not before: as late
/// as a GPU may run it, so that a missing wait shows.
namespace kvs::emulation {

/// Every call holds this lock; work runs under it.
std::recursive_mutex& device_mutex();

void enqueue(cudaStream_t stream, std::function<void()> work);

/// Faults unless the bytes lie in one piece of device memory.
void check_device_memory(const void* first, std::size_t bytes, const char* what);

}  // namespace kvs::emulation
