#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/tiles.h"
#include "kernels/cpu/weight.h"

namespace kvs::cpu {

const PackedWeight& checked_weight(const Weight& weight, std::size_t columns, DType type) {
  const auto* packed = dynamic_cast<const PackedWeight*>(&weight);
  require(packed != nullptr, "weight", "one that this backend made");
  require(packed->type() == type, "weight", std::string(name_of(type)));
  require(packed->columns() == columns, "weight", std::to_string(packed->columns()) + " columns of x");
  return *packed;
}

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

}  // namespace kvs::cpu

namespace kvs::inline kernels {

cpu::ProductEngine& CpuBackend::products(DType type) {
  if (type == products_->type()) return *products_;
  if (f32_products_ == nullptr)
    f32_products_ = cpu::make_product_engine(DType::kF32, static_cast<std::size_t>(threads_));
  return *f32_products_;
}

std::unique_ptr<Weight> CpuBackend::make_weight(const WeightSource& source) {
  constexpr std::size_t kSlabValues = std::size_t{1} << 20, kRowStep = 64;
  cpu::require(source.rows > 0 && source.columns > 0, "make_weight", "rows and columns");
  cpu::require(source.bias.empty() || source.bias.size() == source.rows, "make_weight", "one bias per row");
  const DType type = source.f32 ? DType::kF32 : compute_type();
  cpu::ProductEngine& engine = products(type);
  const auto layout = engine.layout(source.rows, source.columns);
  cpu::WeightMemory packed(layout->bytes());
  const bool is_padded = layout->bytes() > source.rows * source.columns * item_size(type);
  if (is_padded) std::memset(packed.data(), 0, layout->bytes());  // the slabs overwrite the rest
  const std::size_t slab_rows = std::max(kSlabValues / source.columns / kRowStep, std::size_t{1}) * kRowStep;
  std::vector<float> slab(std::min(slab_rows, source.rows) * source.columns);
  for (std::size_t first = 0; first < source.rows; first += slab_rows) {
    const std::size_t count = std::min(slab_rows, source.rows - first);
    source.read(first, count, std::span(slab).first(count * source.columns));
    engine.pack(*layout, packed.data(), first, count, slab.data(), source.columns, 1);
  }
  return std::make_unique<cpu::PackedWeight>(type, layout, std::move(packed),
                                             std::vector<float>(source.bias.begin(), source.bias.end()));
}

void CpuBackend::linear(Operand x, const Weight& weight, BackendView<float, 2> out, bool accumulate) {
  multiply(x.data, x.rows, cpu::checked_weight(weight, x.columns, compute_type()), out, accumulate);
}

void CpuBackend::linear_f32(BackendView<const float, 2> x, const Weight& weight, BackendView<float, 2> out,
                            bool accumulate) {
  multiply(x.data(), x.extent(0), cpu::checked_weight(weight, x.extent(1), DType::kF32), out, accumulate);
}

void CpuBackend::multiply(const void* x, std::size_t rows, const cpu::PackedWeight& weight, BackendView<float, 2> out,
                          bool accumulate) {
  constexpr std::size_t kMaxRows = 256;  // 128 was 5 % slower and 512 no faster (2 cores, 1 MiB of L2 each)
  const std::size_t n = weight.rows(), k = weight.columns();
  cpu::require(out.extent(0) == rows && out.extent(1) == n, "linear", "out of [x.rows, weight rows]");
  if (rows == 0) return;
  const auto team = static_cast<std::size_t>(threads_);
  const std::size_t tile_rows = cpu::row_tile(rows, team, kMaxRows);
  const std::size_t tile_columns = cpu::column_tile(n, weight.layout().column_step(), rows, tile_rows, team);
  // oneDNN's fast products write only dense matrices. A tile of wider rows therefore goes through scratch memory.
  const bool direct = tile_columns == n || rows == 1;
  if (!direct) reserve_scratch(tile_rows * tile_columns * sizeof(float));
  const cpu::TileProducts tiles(products(weight.type()), weight, {rows, tile_rows}, {n, tile_columns},
                                accumulate && direct);
  const cpu::OneThreadEach guard;
  std::atomic<bool> refused = false;
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1) collapse(2)
  for (std::size_t column = 0; column < n; column += tile_columns) {
    for (std::size_t row = 0; row < rows; row += tile_rows) {
      const auto worker = cpu::this_worker();
      const std::size_t height = std::min(tile_rows, rows - row), width = std::min(tile_columns, n - column);
      float* target = out.data() + row * n + column;
      float* tile = direct ? target : static_cast<float*>(scratch_[worker].data());
      const void* from = static_cast<const std::byte*>(x) + row * k * item_size(weight.type());
      if (!tiles.run(worker, from, row, column, tile)) refused = true;
      if (!direct) cpu::write_tile(tile, height, width, target, n, accumulate);
    }
  }
  cpu::require(!refused, "linear", "its products to run");
}

void CpuBackend::narrow(BackendView<const float, 2> x, Operand out) {
  cpu::require(x.extent(0) == out.rows && x.extent(1) == out.columns, "narrow", "out of x's shape");
  const std::size_t size = x.size();
  if (compute_type() == DType::kF32) return copy(out.data, x.data(), size * sizeof(float));
  const float* from = x.data();
  auto* to = static_cast<std::uint16_t*>(out.data);
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (std::size_t i = 0; i < size; ++i) to[i] = f32_to_bf16(from[i]);
}

}  // namespace kvs::inline kernels
