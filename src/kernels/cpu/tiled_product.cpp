// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/tiled_product.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/tiles.h"

namespace kvs::cpu {
namespace {

/// to[r, 0 … columns) = from[r, :], or += with `accumulate`. Rows of `to` are `stride` apart.
void write_tile(const float* from, std::size_t rows, std::size_t columns, float* to, std::size_t stride,
                bool accumulate) {
  for (std::size_t row = 0; row < rows; ++row, from += columns, to += stride) {
    if (accumulate)
      for (std::size_t column = 0; column < columns; ++column) to[column] += from[column];
    else
      std::memcpy(to, from, columns * sizeof(float));
  }
}

}  // namespace

const PackedWeight& checked_weight(const Weight& weight, std::size_t columns, bool for_f32) {
  const auto* packed = dynamic_cast<const PackedWeight*>(&weight);
  require(packed != nullptr, "weight", "one that this backend made");
  require(packed->is_for_f32() == for_f32, "weight", for_f32 ? "one for linear_f32()" : "one for linear()");
  require(packed->columns() == columns, "weight", std::to_string(packed->columns()) + " columns of x");
  return *packed;
}

std::unique_ptr<PackedWeight> pack_weight(ProductEngine& engine, const WeightSource& source) {
  constexpr std::size_t kSlabValues = std::size_t{1} << 20, kRowStep = 64;
  require(source.rows > 0 && source.columns > 0, "make_weight", "rows and columns");
  require(source.bias.empty() || source.bias.size() == source.rows, "make_weight", "one bias per row");
  const auto layout = engine.layout(source.rows, source.columns);
  WeightMemory packed(layout->bytes());
  const bool is_padded = layout->bytes() > source.rows * source.columns * item_size(engine.type());
  if (is_padded) std::memset(packed.data(), 0, layout->bytes());  // the slabs overwrite the rest
  const std::size_t slab_rows = std::max(kSlabValues / source.columns / kRowStep, std::size_t{1}) * kRowStep;
  std::vector<float> slab(std::min(slab_rows, source.rows) * source.columns);
  for (std::size_t first = 0; first < source.rows; first += slab_rows) {
    const std::size_t count = std::min(slab_rows, source.rows - first);
    source.read(first, count, std::span(slab).first(count * source.columns));
    engine.pack(*layout, packed.data(), first, count, slab.data(), source.columns, 1);
  }
  return std::make_unique<PackedWeight>(engine.type(), layout, std::move(packed),
                                        std::vector<float>(source.bias.begin(), source.bias.end()), source.f32);
}

void multiply_tiled(ProductEngine& engine, const void* x, std::size_t rows, const PackedWeight& weight,
                    BackendView<float, 2> out, bool accumulate, std::span<AlignedBuffer> scratch) {
  constexpr std::size_t kMaxRows = 256;  // 128 was 5 % slower and 512 no faster (2 cores, 1 MiB of L2 each)
  const std::size_t n = weight.rows(), k = weight.columns(), team = scratch.size();
  require(out.extent(0) == rows && out.extent(1) == n, "linear", "out of [x.rows, weight rows]");
  if (rows == 0) return;
  const std::size_t tile_rows = row_tile(rows, team, kMaxRows);
  const std::size_t tile_columns = column_tile(n, weight.layout().column_step(), rows, tile_rows, team);
  // oneDNN's fast products write only dense matrices. A tile of wider rows therefore goes through scratch memory.
  const bool direct = tile_columns == n || rows == 1;
  if (!direct)
    for (AlignedBuffer& buffer : scratch) buffer.reserve(tile_rows * tile_columns * sizeof(float));
  const TileProducts tiles(engine, weight, {rows, tile_rows}, {n, tile_columns}, accumulate && direct);
  const OneThreadEach guard;
  std::atomic<bool> refused = false;
#pragma omp parallel for num_threads(static_cast <int>(team)) schedule(dynamic, 1) collapse(2)
  for (std::size_t column = 0; column < n; column += tile_columns) {
    for (std::size_t row = 0; row < rows; row += tile_rows) {
      const auto worker = this_worker();
      const std::size_t height = std::min(tile_rows, rows - row), width = std::min(tile_columns, n - column);
      float* target = out.data() + row * n + column;
      float* tile = direct ? target : static_cast<float*>(scratch[worker].data());
      const void* from = static_cast<const std::byte*>(x) + row * k * item_size(weight.type());
      if (!tiles.run(worker, from, row, column, tile)) refused = true;
      if (!direct) write_tile(tile, height, width, target, n, accumulate);
    }
  }
  require(!refused, "linear", "its products to run");
}

}  // namespace kvs::cpu
