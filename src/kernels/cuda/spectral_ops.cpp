// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/spectral_ops.h"

#include <array>
#include <string>

#include "core/error.h"
#include "kernels/cuda/device_array.h"
#include "kernels/cuda/fft_plans.h"
#include "kernels/cuda/spectral_kernels.h"
#include "kernels/dct_resample.h"

namespace kvs::cuda {
namespace {

/// One transform uses 16 bytes per pair of channels and token: twice the size of the states in f32.
class CudaSpectralOps final : public SpectralOps {
 public:
  explicit CudaSpectralOps(const Context& context) : context_(context), plans_(context) {}

  void power(BackendView<const float, 3> states, Transform transform, std::size_t first_token,
             std::span<double> power) override;
  void filter(BackendView<const float, 3> x, Transform transform, std::size_t first_token, std::size_t last_token,
              TensorView<const double, 2> gains, BackendView<float, 4> out) override;
  void analyze(BackendView<const float, 3> x, const BinGrid& grid, BackendView<float, 4> spectrum) override;
  void synthesize(BackendView<const float, 4> spectrum, const BinGrid& grid, BackendView<float, 3> x) override;
  void add_sample(BackendView<const float, 3> x, std::size_t token, std::size_t place, const BinGrid& grid,
                  BackendView<float, 4> spectrum) override;
  /// Runs on the host, because it uses host memory.
  void dct_resample(TensorView<const float, 2> states, std::size_t first_bin, double scale,
                    TensorView<float, 2> out) override {
    kvs::dct_resample(states, first_bin, scale, out);
  }

 private:
  using Signals = DeviceArray<cuDoubleComplex>;
  Signals& reserved(Signals& signals, const Segment& segment) const {
    signals.reserve(context_, segment.samples * segment.signals());
    return signals;
  }

  const Context& context_;
  FftPlans plans_;
  Signals spectrum_, filtered_;
};

void CudaSpectralOps::power(BackendView<const float, 3> states, Transform transform, std::size_t first_token,
                            std::span<double> power) {
  const auto [heads, tokens, head_dim] = states.shape();
  if (first_token >= tokens || head_dim == 0) {
    throw Error(ErrorCode::kUsage, "power spectrum",
                "found " + std::to_string(tokens) + " tokens, expected more than " + std::to_string(first_token));
  }
  const Segment segment{heads, tokens, head_dim, first_token, tokens - first_token, transform};
  const std::size_t bins = bins_of(transform, segment.samples);
  if (power.size() != heads * bins) throw Error(ErrorCode::kInternal, "power spectrum", "wrong size of the result");
  if (heads == 0) return;
  cuDoubleComplex* const signals = reserved(spectrum_, segment).data();
  const DeviceArray<double> result(context_, power.size());
  load_signals(context_, segment, states.data(), signals);
  plans_.run(signals, segment.samples, segment.signals(), CUFFT_FORWARD);
  reduce_power(context_, segment, signals, result.data());
  context_.download(power.data(), result.data(), power.size_bytes());
}

void CudaSpectralOps::filter(BackendView<const float, 3> x, Transform transform, std::size_t first_token,
                             std::size_t last_token, TensorView<const double, 2> gains, BackendView<float, 4> out) {
  const auto [heads, tokens, head_dim] = x.shape();
  const std::size_t members = gains.extent(0);
  if (last_token > tokens || first_token >= last_token) {
    throw Error(ErrorCode::kUsage, "spectral filter",
                "found tokens [" + std::to_string(first_token) + ", " + std::to_string(last_token) +
                    "), expected a part of " + std::to_string(tokens));
  }
  const Segment segment{heads, tokens, head_dim, first_token, last_token - first_token, transform};
  const std::size_t bins = bins_of(transform, segment.samples);
  if (gains.extent(1) != bins || out.shape() != std::array<std::size_t, 4>{members, heads, tokens, head_dim})
    throw Error(ErrorCode::kInternal, "spectral filter", "gains, input and output do not fit together");
  if (out.empty()) return;
  const DeviceArray<double> device_gains(context_, gains.span());
  cuDoubleComplex* const spectrum = reserved(spectrum_, segment).data();
  cuDoubleComplex* const filtered = reserved(filtered_, segment).data();
  load_signals(context_, segment, x.data(), spectrum);  // reads all of x's segment, so x may be a member of out
  plans_.run(spectrum, segment.samples, segment.signals(), CUFFT_FORWARD);
  for (std::size_t member = 0; member < members; ++member) {
    apply_gain(context_, segment, spectrum, device_gains.data() + member * bins, filtered);
    plans_.run(filtered, segment.samples, segment.signals(), CUFFT_INVERSE);
    store_signals(context_, segment, filtered, x.data(), out.slice(member).data());
  }
}

Bins bins_of_grid(const BinGrid& grid) { return {grid.bins.data(), grid.bins.size(), grid.samples}; }

void CudaSpectralOps::analyze(BackendView<const float, 3> x, const BinGrid& grid, BackendView<float, 4> spectrum) {
  check_grid(x.shape(), spectrum.shape(), grid);
  if (spectrum.empty()) return;
  const auto [heads, tokens, head_dim] = x.shape();
  const Segment given{heads, tokens, head_dim, 0, tokens, Transform::kDft};
  Segment whole = given;
  whole.samples = grid.samples;
  cuDoubleComplex* const signals = reserved(spectrum_, whole).data();
  load_signals(context_, given, x.data(), signals);
  context_.clear(signals + tokens * given.signals(),
                 (grid.samples - tokens) * given.signals() * sizeof(cuDoubleComplex));
  plans_.run(signals, grid.samples, whole.signals(), CUFFT_FORWARD);
  pick_bins(context_, whole, bins_of_grid(grid), signals, spectrum.data());
}

void CudaSpectralOps::synthesize(BackendView<const float, 4> spectrum, const BinGrid& grid, BackendView<float, 3> x) {
  check_grid(x.shape(), spectrum.shape(), grid);
  if (x.empty()) return;
  const auto [heads, tokens, head_dim] = x.shape();
  const Segment segment{heads, tokens, head_dim, 0, grid.samples, Transform::kDft};
  cuDoubleComplex* const signals = reserved(spectrum_, segment).data();
  context_.clear(signals, grid.samples * segment.signals() * sizeof(cuDoubleComplex));
  place_bins(context_, segment, bins_of_grid(grid), spectrum.data(), signals);
  plans_.run(signals, grid.samples, segment.signals(), CUFFT_INVERSE);
  store_signals(context_, segment, signals, x.data(), x.data());
}

void CudaSpectralOps::add_sample(BackendView<const float, 3> x, std::size_t token, std::size_t place,
                                 const BinGrid& grid, BackendView<float, 4> spectrum) {
  check_grid({x.extent(0), 1, x.extent(2)}, spectrum.shape(), grid);
  if (spectrum.empty()) return;
  const Segment segment{x.extent(0), x.extent(1), x.extent(2), 0, 1, Transform::kDft};
  cuda::add_sample(context_, segment, bins_of_grid(grid), x.data(), token, place, spectrum.data());
}

}  // namespace

std::unique_ptr<SpectralOps> make_spectral_ops(const Context& context) {
  return std::make_unique<CudaSpectralOps>(context);
}

}  // namespace kvs::cuda
