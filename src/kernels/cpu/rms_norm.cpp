#include <cmath>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/lanes.h"

namespace kvs {
namespace {

double sum_of_squares(const float* x, std::size_t count) {
  cpu::Lanes sums[4] = {};  // four chains, so that one addition need not wait for the last
  std::size_t at = 0;
  for (std::size_t chain = 0; at + cpu::kLanes <= count; at += cpu::kLanes, chain = (chain + 1) % 4) {
    const cpu::Lanes value = cpu::load(x + at);
    sums[chain] += value * value;
  }
  const cpu::Lanes rest = at < count ? cpu::load_part(x + at, count - at) : cpu::Lanes{};
  return cpu::sum_of(sums[0] + sums[1]) + cpu::sum_of(sums[2] + sums[3]) + cpu::sum_of(rest * rest);
}

template <class T>
void normalise_row(const float* x, const float* gain, std::size_t count, float epsilon, T* out) {
  const double mean = sum_of_squares(x, count) / static_cast<double>(count);
  const auto inverse = static_cast<float>(1.0 / std::sqrt(mean + static_cast<double>(epsilon)));
  std::size_t at = 0;
  for (; at + cpu::kLanes <= count; at += cpu::kLanes)
    cpu::store(out + at, cpu::load(x + at) * inverse * cpu::load(gain + at));
  const std::size_t left = count - at;
  if (left > 0)
    cpu::store_part(out + at, cpu::load_part(x + at, left) * inverse * cpu::load_part(gain + at, left), left);
}

template <class T>
void normalise(BackendView<const float, 2> x, const float* gain, float epsilon, T* out, int threads) {
  const std::size_t rows = x.extent(0), columns = x.extent(1);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t row = 0; row < rows; ++row)
    normalise_row(x.data() + row * columns, gain, columns, epsilon, out + row * columns);
}

}  // namespace

void CpuBackend::rms_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon, Operand out) {
  cpu::require(gain.extent(0) == x.extent(1), "rms_norm", "one gain per column");
  cpu::require(out.rows == x.extent(0) && out.columns == x.extent(1), "rms_norm", "out of x's shape");
  if (compute_type() == DType::kBF16)
    normalise(x, gain.data(), epsilon, static_cast<std::uint16_t*>(out.data), threads_);
  else
    normalise(x, gain.data(), epsilon, static_cast<float*>(out.data), threads_);
}

}  // namespace kvs
