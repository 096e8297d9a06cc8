// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/cpu/products.h"
#include "kernels/cpu/weight.h"

namespace kvs::cpu {

/// Returns the calling thread's number in its OpenMP team.
std::size_t this_worker() noexcept;

/// Returns the rows of x per task. Each thread should get four tasks, but a task has at least 32 rows (a smaller tile
/// reads the packed weight faster than the shared cache delivers it) and at most `most`.
std::size_t row_tile(std::size_t rows, std::size_t threads, std::size_t most) noexcept;

/// Returns the weight rows per task: all n, unless there are fewer row tiles than threads; then a multiple of `step`.
std::size_t column_tile(std::size_t n, std::size_t step, std::size_t rows, std::size_t tile_rows,
                        std::size_t threads) noexcept;

/// One axis divided into tiles. The last tile may be shorter.
struct Cut {
  std::size_t extent, tile;
  std::size_t tail() const noexcept { return extent % tile == 0 ? tile : extent % tile; }
  std::size_t width(std::size_t from) const noexcept { return extent - from < tile ? extent - from : tile; }
};

/// The up to four products (inner, last row, last column, corner) of a tiled x Wᵀ.
class TileProducts {
 public:
  TileProducts(ProductEngine& engine, const PackedWeight& weight, Cut rows, Cut columns, bool accumulate);

  /// Computes the tile that begins at (row, column). x points to its first row; out is a dense tile. Returns false if
  /// the engine refused.
  bool run(std::size_t worker, const void* x, std::size_t row, std::size_t column, float* out) const noexcept;

 private:
  const PackedWeight* weight_;
  Cut rows_, columns_;
  std::shared_ptr<const Product> products_[2][2];  // [last row tile][last column tile]
};

}  // namespace kvs::cpu
