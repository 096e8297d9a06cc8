// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/lanes.h"
#include "kernels/cpu/simd/loops.h"

namespace kvs::inline kernels {
namespace {

/// Normalises a row in place, `channels` adjacent channels at a time.
void normalise_row(float* x, std::size_t count, const GateInput& in) {
  const std::size_t channels = in.norm_channels;
  for (std::size_t first = 0; first < count; first += channels) {
    const float* const gain = in.gain.data() + first % in.gain.size();
    double squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::size_t i = first; i < first + channels; ++i)
      squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    const auto inverse =
        static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(channels) + static_cast<double>(in.epsilon)));
    for (std::size_t i = 0; i < channels; ++i) x[first + i] *= inverse * gain[i];
  }
}

/// out = x ⊙ gate.
template <class T>
void multiply_row(const float* x, const float* gate, std::size_t count, T* out) {
  std::size_t at = 0;
  for (; at + cpu::kLanes <= count; at += cpu::kLanes) cpu::store(out + at, cpu::load(x + at) * cpu::load(gate + at));
  const std::size_t left = count - at;
  if (left > 0) cpu::store_part(out + at, cpu::load_part(x + at, left) * cpu::load_part(gate + at, left), left);
}

template <class T>
void gate_row(float* x, const float* gate, std::size_t count, const GateInput& in, T* out) {
  constexpr bool kNarrow = sizeof(T) == sizeof(std::uint16_t);
  const auto activate = cpu::loops().activate;
  const bool normed = !in.gain.empty(), last = !normed || !in.gate_first;
  if (normed && !in.gate_first) normalise_row(x, count, in);
  if (last)
    return in.silu ? activate(Activation::kSilu, gate, x, count, out, kNarrow) : multiply_row(x, gate, count, out);
  if (in.silu)
    activate(Activation::kSilu, gate, x, count, x, false);
  else
    multiply_row(x, gate, count, x);
  normalise_row(x, count, in);
  std::size_t at = 0;
  for (; at + cpu::kLanes <= count; at += cpu::kLanes) cpu::store(out + at, cpu::load(x + at));
  if (at < count) cpu::store_part(out + at, cpu::load_part(x + at, count - at), count - at);
}

template <class T>
void gate_rows(const GateInput& in, T* out, int threads) {
  const std::size_t rows = in.x.extent(0), count = in.x.extent(1), stride = in.gate.rows.extent(1);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t row = 0; row < rows; ++row)
    gate_row(in.x.data() + row * count, in.gate.rows.data() + row * stride + in.gate.first, count, in,
             out + row * count);
}

void store(float value, float& to) { to = value; }
void store(float value, std::uint16_t& to) { to = f32_to_bf16(value); }

template <class T>
void sigmoid_rows(const BackendView<const float, 2>& gate, T* x, int threads) {
  const std::size_t size = gate.size();
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t i = 0; i < size; ++i) store(f32_of(x[i]) / (1 + std::exp(-gate.data()[i])), x[i]);
}

}  // namespace

void CpuBackend::gate(const GateInput& in, Operand out) {
  const std::size_t rows = in.x.extent(0), channels = in.x.extent(1);
  cpu::require(
      out.rows == rows && out.columns == channels && in.gate.count == channels && in.gate.rows.extent(0) == rows,
      "gate", "a gate and out of x's shape");
  cpu::require(in.gain.empty() || (in.norm_channels > 0 && channels % in.norm_channels == 0 &&
                                   (in.gain.size() == in.norm_channels || in.gain.size() == channels)),
               "gate", "a gain of a group's channels or of all channels");
  if (compute_type() == DType::kBF16)
    gate_rows(in, static_cast<std::uint16_t*>(out.data), threads_);
  else
    gate_rows(in, static_cast<float*>(out.data), threads_);
}

void CpuBackend::gate_by_sigmoid(BackendView<const float, 2> gate, Operand x) {
  cpu::require(gate.extent(0) == x.rows && gate.extent(1) == x.columns, "gate_by_sigmoid", "a gate of x's shape");
  if (compute_type() == DType::kBF16)
    sigmoid_rows(gate, static_cast<std::uint16_t*>(x.data), threads_);
  else
    sigmoid_rows(gate, static_cast<float*>(x.data), threads_);
}

}  // namespace kvs::inline kernels
