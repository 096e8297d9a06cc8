#include <algorithm>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/fast_math.h"

namespace kvs {
namespace {

// x times the share of it that passes. Each saturates to 0 and x, and keeps NaN.
struct Silu {
  static cpu::Lanes of(cpu::Lanes x) { return x / (1.0F + cpu::exp(-x)); }
};
struct GeluTanh {
  // ½ (1 + tanh u) is the logistic function of 2u, which loses no digits where tanh u is close to −1.
  static cpu::Lanes of(cpu::Lanes x) {
    return x / (1.0F + cpu::exp(-0x1.988454p+0F * (x + 0x1.6e4e26p-5F * x * x * x)));  // 2 √(2/π), 0.044715
  }
};
struct GeluErf {
  static cpu::Lanes of(cpu::Lanes x) { return x * (0.5F * cpu::erfc(x * -0x1.6a09e6p-1F)); }  // −1/√2
};

/// out = f(gate) · up over a row.
template <class Function, class T>
void gate_row(const float* gate, const float* up, std::size_t count, T* out) {
  std::size_t at = 0;
  for (; at + cpu::kLanes <= count; at += cpu::kLanes)
    cpu::store(out + at, Function::of(cpu::load(gate + at)) * cpu::load(up + at));
  const std::size_t left = count - at;
  if (left > 0)
    cpu::store_part(out + at, Function::of(cpu::load_part(gate + at, left)) * cpu::load_part(up + at, left), left);
}

template <class Function, class T>
void activate_row(const float* x, std::size_t count, T* out) {
  std::size_t at = 0;
  for (; at + cpu::kLanes <= count; at += cpu::kLanes) cpu::store(out + at, Function::of(cpu::load(x + at)));
  if (at < count) cpu::store_part(out + at, Function::of(cpu::load_part(x + at, count - at)), count - at);
}

/// Rows of f(x), or of f(x's first half) · its second half.
template <class Function, class T>
void rows_of(BackendView<const float, 2> x, std::size_t columns, T* out, int threads) {
  const std::size_t rows = x.extent(0), stride = x.extent(1);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t row = 0; row < rows; ++row) {
    const float* from = x.data() + row * stride;
    if (stride == columns)
      activate_row<Function>(from, columns, out + row * columns);
    else
      gate_row<Function>(from, from + columns, columns, out + row * columns);
  }
}

template <class T>
void choose(BackendView<const float, 2> x, Activation activation, std::size_t columns, T* out, int threads) {
  switch (activation) {
    case Activation::kSilu:
      return rows_of<Silu>(x, columns, out, threads);
    case Activation::kGeluTanh:
      return rows_of<GeluTanh>(x, columns, out, threads);
    case Activation::kGeluErf:
      return rows_of<GeluErf>(x, columns, out, threads);
  }
}

}  // namespace

void CpuBackend::raise(Operand x, const Weight& weight, Activation activation, Operand out) {
  constexpr std::size_t kSlabRows = 2048;  // so that the product's memory stays bounded
  const std::size_t width = weight.rows(), columns = out.columns;
  cpu::require(out.rows == x.rows && (width == columns || width == 2 * columns), "raise",
               "out of x's rows and the weight's rows or half of them");
  raised_.reserve(std::min(kSlabRows, x.rows) * width * sizeof(float));
  for (std::size_t first = 0; first < x.rows; first += kSlabRows) {
    const std::size_t rows = std::min(kSlabRows, x.rows - first), item = item_size(compute_type());
    const auto at = [&](const Operand& matrix) {
      return static_cast<std::byte*>(matrix.data) + first * matrix.columns * item;
    };
    const BackendView<float, 2> raised(std::span(static_cast<float*>(raised_.data()), rows * width), {rows, width});
    linear({at(x), rows, x.columns}, weight, raised, false);
    if (compute_type() == DType::kBF16)
      choose(raised, activation, columns, reinterpret_cast<std::uint16_t*>(at(out)), threads_);
    else
      choose(raised, activation, columns, reinterpret_cast<float*>(at(out)), threads_);
  }
}

}  // namespace kvs
