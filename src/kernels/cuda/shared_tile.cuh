// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include "kernels/cuda/ptx.cuh"

namespace kvs::cuda {

/// A layout of rows of D bf16 values in shared memory, so that tensor-core fragments are read without bank conflicts
/// and without padding. A row is D / 8 chunks of 16 bytes; eight chunks fill all 32 banks. An 8 × 8 matrix is one chunk
/// of eight consecutive rows, which must lie in eight different eighths of the banks. Rows are kSpan · (odd) chunks
/// long, so 8 / kSpan rows differ by themselves. The others differ because chunks are permuted within groups of kSpan.
template <int D>
struct SharedTile {
  static constexpr int kChunks = D / 8;
  static constexpr int kSpan = kChunks % 8 == 0 ? 8 : kChunks % 4 == 0 ? 4 : kChunks % 2 == 0 ? 2 : 1;
  static constexpr int kRowBytes = D * 2;
  static_assert(D % 16 == 0);

  /// Returns the value that is xored with a row's chunk numbers. It repeats every eight rows.
  __device__ static int swizzle(int row) { return row / (8 / kSpan) % kSpan; }
  /// Returns the byte offset of a chunk in the tile.
  __device__ static int offset(int row, int chunk) { return row * kRowBytes + (chunk ^ swizzle(row)) * 16; }
};

/// A lane's row and side (0: the left eight of 16 columns) in the fragments at rows and columns 0, 16, 32, … of a tile.
template <int D>
class FragmentRow {
 public:
  __device__ FragmentRow(ptx::SharedAddress tile, int row, int side)
      : row_(tile + row * SharedTile<D>::kRowBytes), flip_((side ^ SharedTile<D>::swizzle(row)) * 16) {}
  /// Returns the address for the fragment at row 16 · i and column 16 · k, in a tile `ahead` bytes further.
  __device__ ptx::SharedAddress at(int i, int k, int ahead = 0) const {
    return row_ + ahead + (k % 4 * 32 ^ flip_) + i * 16 * SharedTile<D>::kRowBytes + k / 4 * 128;  // flip_ < 128
  }

 private:
  ptx::SharedAddress row_;
  int flip_;
};

/// Starts to copy `Rows` rows into a tile. Source rows start at `from` and are `size` values apart. Reads the first
/// `chunks` chunks of the first `count` rows; the rest becomes zeros. Groups of kSpan adjacent threads (of Threads)
/// copy the chunks of one row, so that a thread's shared-memory addresses have a constant distance.
template <int D, int Rows, int Threads>
__device__ void copy_rows(ptx::SharedAddress tile, const __nv_bfloat16* from, int size, int count, int chunks) {
  constexpr int kSpan = SharedTile<D>::kSpan, kRows = Threads / kSpan;  // rows at once
  static_assert(Rows % kRows == 0 && kRows % 8 == 0);
  const int chunk = static_cast<int>(threadIdx.x) % kSpan, row = static_cast<int>(threadIdx.x) / kSpan;
  const ptx::SharedAddress to = tile + SharedTile<D>::offset(row, chunk);
  from += row * size + chunk * 8;
#pragma unroll
  for (int r = 0; r < Rows; r += kRows, from += kRows * size) {
#pragma unroll
    for (int c = 0; c < SharedTile<D>::kChunks; c += kSpan)
      ptx::copy_async(to + r * SharedTile<D>::kRowBytes + c * 16, from + c * 8, row + r < count && chunk + c < chunks);
  }
}

}  // namespace kvs::cuda
