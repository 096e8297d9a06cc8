#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/fast_math.h"

namespace kvs {
namespace {

cpu::Lanes gated(cpu::Lanes gate, cpu::Lanes up) { return gate / (1.0F + cpu::exp(-gate)) * up; }

template <class T>
void gate_row(const float* gate, const float* up, std::size_t count, T* out) {
  std::size_t at = 0;
  for (; at + cpu::kLanes <= count; at += cpu::kLanes)
    cpu::store(out + at, gated(cpu::load(gate + at), cpu::load(up + at)));
  const std::size_t left = count - at;
  if (left > 0) cpu::store_part(out + at, gated(cpu::load_part(gate + at, left), cpu::load_part(up + at, left)), left);
}

template <class T>
void gate_rows(BackendView<const float, 2> gate_up, T* out, int threads) {
  const std::size_t rows = gate_up.extent(0), columns = gate_up.extent(1) / 2;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t row = 0; row < rows; ++row) {
    const float* gate = gate_up.data() + row * 2 * columns;
    gate_row(gate, gate + columns, columns, out + row * columns);
  }
}

}  // namespace

void CpuBackend::swiglu(BackendView<const float, 2> gate_up, Operand out) {
  cpu::require(gate_up.extent(0) == out.rows && gate_up.extent(1) == 2 * out.columns, "swiglu",
               "gate_up of [out.rows, 2 out.columns]");
  if (compute_type() == DType::kBF16)
    gate_rows(gate_up, static_cast<std::uint16_t*>(out.data), threads_);
  else
    gate_rows(gate_up, static_cast<float*>(out.data), threads_);
}

}  // namespace kvs
