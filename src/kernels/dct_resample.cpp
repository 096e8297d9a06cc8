#include "kernels/dct_resample.h"

#include <fftw3.h>

#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/fft_plans.h"

namespace kvs {
namespace {

/// Runs FFTW's unnormalised real transform down the columns of x [samples, channels], in place.
void transform_columns(std::vector<double>& x, std::size_t samples, std::size_t channels, fftw_r2r_kind kind) {
  if (samples > std::numeric_limits<int>::max() || channels > std::numeric_limits<int>::max())
    throw Error(ErrorCode::kUnsupported, "DCT", "found more than 2147483647 samples or channels");
  const int length = static_cast<int>(samples), columns = static_cast<int>(channels);
  const auto destroy = [](fftw_plan plan) {
    const std::lock_guard lock(fft_planner_mutex());
    fftw_destroy_plan(plan);
  };
  std::unique_lock lock(fft_planner_mutex());
  // Estimated as in FftPlans: a measured plan could round differently from run to run.
  const std::unique_ptr<fftw_plan_s, decltype(destroy)> plan(
      fftw_plan_many_r2r(1, &length, columns, x.data(), nullptr, columns, 1, x.data(), nullptr, columns, 1, &kind,
                         FFTW_ESTIMATE),
      destroy);
  lock.unlock();
  if (!plan) throw Error(ErrorCode::kInternal, "DCT", "no plan for " + std::to_string(samples) + " samples");
  fftw_execute(plan.get());
}

}  // namespace

void dct_resample(TensorView<const float, 2> states, std::size_t first_bin, double scale, TensorView<float, 2> out) {
  const std::size_t tokens = states.extent(0), channels = states.extent(1), count = out.extent(0);
  if (count == 0 || count > tokens || first_bin > tokens - count)
    throw Error(ErrorCode::kUsage, "DCT resampling",
                "found coefficients " + std::to_string(first_bin) + " to " + std::to_string(first_bin + count) +
                    " (exclusive), expected at least one of " + std::to_string(tokens));
  if (out.extent(1) != channels) throw Error(ErrorCode::kInternal, "DCT resampling", "the channel counts differ");
  std::vector<double> x(states.span().begin(), states.span().end());
  transform_columns(x, tokens, channels, FFTW_REDFT10);
  // Orthonormal coefficients are FFTW's times √(1/2N), and √(1/4N) for bin 0; its inverse takes orthonormal ones times
  // √(1/2L), and √(1/L) for bin 0.
  const double forward = std::sqrt(0.5 / static_cast<double>(tokens)),
               inverse = std::sqrt(0.5 / static_cast<double>(count));
  std::vector<double> kept(x.begin() + static_cast<std::ptrdiff_t>(first_bin * channels),
                           x.begin() + static_cast<std::ptrdiff_t>((first_bin + count) * channels));
  for (std::size_t bin = 0; bin < count; ++bin) {
    double factor = scale * forward * inverse;
    if (first_bin + bin == 0) factor *= std::sqrt(0.5);
    if (bin == 0) factor *= std::sqrt(2.0);
    for (std::size_t channel = 0; channel < channels; ++channel) kept[bin * channels + channel] *= factor;
  }
  transform_columns(kept, count, channels, FFTW_REDFT01);
  for (std::size_t i = 0; i < kept.size(); ++i) out.data()[i] = static_cast<float>(kept[i]);
}

}  // namespace kvs
