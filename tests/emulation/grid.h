// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <string_view>

/// CUDA's execution model on the processor. The threads of a block are fibers of one worker: each runs until it waits
/// at a barrier, in an order that changes at every turn. Some warps get far ahead of others, so that a read before
/// another thread's write shows. OpenMP's threads share the blocks of a grid. A fault ends the program with one line.
namespace kvs::emulation {

constexpr int kLanes = 32;
constexpr int kMaxSharedBytes = 227 << 10;  // limit of a block, on compute capability 9.0

struct GridShape {
  dim3 blocks, threads;
  std::size_t shared_bytes;
};

/// Ends the program with "emulated CUDA: found " and a description of code that no GPU could run, or would run wrongly.
[[noreturn]] void fail(std::string_view found);

/// Returns whether a GPU would accept the launch. More than 48 KiB of shared memory must have been granted to the
/// kernel.
cudaError_t check_shape(const GridShape& shape, const void* kernel);
/// Does the same as cudaFuncSetAttribute for dynamic shared memory.
void grant_shared_memory(const void* kernel, std::size_t bytes);

/// Runs `body` for every thread of the grid. Dynamic shared memory starts as NaN in every block; writes behind its end
/// are found at the block's end.
void run_grid(const GridShape& shape, const std::function<void()>& body);

// For the running thread of a block:

int lane();
/// Returns once all threads of the block that have not ended wait here; faults if they cannot.
void block_barrier();
/// Waits for all 32 lanes of the warp; the last to arrive calls `operation` with the values of all lanes. Faults if a
/// lane has ended or does something else.
void warp_operation(void (*operation)(void* const* lanes), void* own);
/// cp.async: the bytes, or zeros from null, arrive at once or at the thread's wait, by chance: as early or as late as a
/// GPU may bring them.
void copy_later(void* to, const void* from, std::size_t bytes);
void end_copy_group();
void wait_for_copies(std::size_t groups_left);
/// Faults unless the bytes lie in the block's dynamic shared memory, aligned to their size.
void check_shared(std::size_t first, std::size_t bytes);

}  // namespace kvs::emulation
