// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/tiles.h"

#include <omp.h>

#include <algorithm>

#include "kernels/cpu/checks.h"

namespace kvs::cpu {

std::size_t this_worker() noexcept { return static_cast<std::size_t>(omp_get_thread_num()); }

std::size_t row_tile(std::size_t rows, std::size_t threads, std::size_t most) noexcept {
  const std::size_t quarter = (rows / (4 * threads) + 15) / 16 * 16;
  return std::min(rows, std::clamp(quarter, std::size_t{32}, most));
}

std::size_t column_tile(std::size_t n, std::size_t step, std::size_t rows, std::size_t tile_rows,
                        std::size_t threads) noexcept {
  const std::size_t row_tiles = (rows + tile_rows - 1) / tile_rows;
  if (row_tiles >= threads || step == n) return n;
  const std::size_t parts = (2 * threads + row_tiles - 1) / row_tiles;
  return std::min(n, (n / parts / step + 1) * step);
}

TileProducts::TileProducts(ProductEngine& engine, const PackedWeight& weight, Cut rows, Cut columns, bool accumulate)
    : weight_(&weight), rows_(rows), columns_(columns) {
  for (const bool last_row : {false, true}) {
    for (const bool last_column : {false, true}) {
      const ProductShape shape{.m = last_row ? rows.tail() : rows.tile,
                               .n = last_column ? columns.tail() : columns.tile,
                               .k = weight.columns(),
                               .accumulate = accumulate,
                               .bias = weight.has_bias()};
      products_[last_row][last_column] = engine.product(shape, weight.layout());
      require(products_[last_row][last_column] != nullptr, "linear", "a weight that can be cut");
    }
  }
}

bool TileProducts::run(std::size_t worker, const void* x, std::size_t row, std::size_t column,
                       float* out) const noexcept {
  const Product& product = *products_[rows_.extent - row <= rows_.tail()][columns_.extent - column <= columns_.tail()];
  return product.run(worker,
                     {.x = x, .packed = weight_->rows_from(column), .bias = weight_->bias_from(column), .out = out});
}

}  // namespace kvs::cpu
