// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/spectral_ops.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/channel_block.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/fft_plans.h"
#include "kernels/dct_resample.h"

namespace kvs::inline kernels {
namespace {

using Complex = std::complex<double>;
using namespace cpu;

/// e^{sign·jπk/N}, k = 0 … ⌊N/2⌋: converts bins (k, N − k) of the reordered signal's FFT to DCT coefficients.
std::vector<Complex> half_turns(std::size_t samples, double sign) {
  std::vector<Complex> turns(samples / 2 + 1);
  for (std::size_t k = 0; k < turns.size(); ++k) {
    turns[k] = std::polar(1.0, sign * std::numbers::pi * static_cast<double>(k) / static_cast<double>(samples));
  }
  return turns;
}

double sum_of(FftLanes lanes) noexcept { return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]); }
static_assert(kFftSignals == 4);

FftLanes norm(const FftSample& z) noexcept { return z.real * z.real + z.imaginary * z.imaginary; }

FftSample operator*(const FftSample& z, double factor) noexcept { return {z.real * factor, z.imaginary * factor}; }

FftSample operator+(const FftSample& a, const FftSample& b) noexcept {
  return {a.real + b.real, a.imaginary + b.imaginary};
}

FftSample operator-(const FftSample& a, const FftSample& b) noexcept {
  return {a.real - b.real, a.imaginary - b.imaginary};
}

FftSample operator*(const FftSample& z, const Complex& turn) noexcept {
  return {z.real * turn.real() - z.imaginary * turn.imag(), z.real * turn.imag() + z.imaginary * turn.real()};
}

/// sum[k] += Σ |z[k]|² over signals. Bin k of a pair of real channels has power (|Z[k]|² + |Z[N−k]|²)/2; the caller
/// adds the two halves at the end.
void add_dft_power(const FftSample* z, std::size_t samples, double* sum) noexcept {
  for (std::size_t k = 0; k < samples; ++k) sum[k] += sum_of(norm(z[k]));
}

/// Adds the unscaled DCT power of channel pairs. With u = e^{−jπk/N} Z[k] and v = Z[N−k], bin k has |u + v|²/4 and bin
/// N − k has |u − v|²/4 (for both channels together, because the DCT is real and linear).
void add_dct_power(const FftSample* z, const std::vector<Complex>& turns, std::size_t samples, double* sum) noexcept {
  sum[0] += sum_of(norm(z[0]));
  for (std::size_t k = 1; 2 * k <= samples; ++k) {
    const std::size_t mirror = samples - k;
    const FftSample u = z[k] * turns[k], v = z[mirror];
    sum[k] += sum_of(norm(u + v));
    if (mirror != k) sum[mirror] += sum_of(norm(u - v));
  }
}

/// Converts the sums of add_*_power to mean orthonormal power per channel.
void finish_power(Transform transform, std::span<const double> sum, std::size_t channels, std::span<double> power) {
  const std::size_t samples = sum.size();
  const double scale = 1.0 / (static_cast<double>(samples) * static_cast<double>(channels));
  power[0] = sum[0] * scale;
  for (std::size_t k = 1; k < power.size(); ++k) {
    power[k] = (transform == Transform::kDct ? sum[k] : sum[k] + sum[samples - k]) * scale / 2;
  }
}

/// Multiplies DFT bins k and N − k of both channels by gain[k].
void apply_dft_gain(const FftSample* z, const double* gain, std::size_t samples, FftSample* out) noexcept {
  for (std::size_t k = 0; k < samples; ++k) out[k] = z[k] * gain[std::min(k, samples - k)];
}

/// Multiplies DCT coefficient k of both channels by gain[k]. For the reordered signal's FFT this is Z'[k] = (g[k] +
/// g[N−k])/2 · Z[k] + (g[k] − g[N−k])/2 · e^{jπk/N} Z[N−k].
void apply_dct_gain(const FftSample* z, const std::vector<Complex>& turns, const double* gain, std::size_t samples,
                    FftSample* out) noexcept {
  out[0] = z[0] * gain[0];
  for (std::size_t k = 1; 2 * k <= samples; ++k) {
    const std::size_t mirror = samples - k;
    const double sum = (gain[k] + gain[mirror]) / 2, difference = (gain[k] - gain[mirror]) / 2;
    const FftSample low = z[k], high = z[mirror];
    out[k] = low * sum + high * turns[k] * difference;
    if (mirror != k) out[mirror] = high * sum + low * std::conj(turns[k]) * difference;
  }
}

/// Returns the addresses of the real and imaginary parts of a bin in a spectrum [head, bin, 2, head_dim].
template <class T>
std::array<T*, 2> parts_of(const BackendView<T, 4>& spectrum, std::size_t head, std::size_t bin) {
  const std::size_t head_dim = spectrum.extent(3);
  T* const real = spectrum.data() + (head * spectrum.extent(1) + bin) * 2 * head_dim;
  return {real, real + head_dim};
}

/// Extracts bin k of channels a and b from the transform z of a + jb.
void split_bin(const FftSample* z, std::size_t k, std::size_t samples, FftSample& a, FftSample& b) noexcept {
  const FftSample &low = z[k], &high = z[(samples - k) % samples];
  a = FftSample{low.real + high.real, low.imaginary - high.imaginary} * 0.5;
  b = FftSample{low.imaginary + high.imaginary, high.real - low.real} * 0.5;
}

/// Inverse of split_bin(), for bin k and its mirror image.
void join_bin(const FftSample& a, const FftSample& b, std::size_t k, std::size_t samples, FftSample* z) noexcept {
  const std::size_t mirror = (samples - k) % samples;
  if (mirror == k) {  // real, because the signal is real
    z[k] = {a.real, b.real};
    return;
  }
  z[k] = {a.real - b.imaginary, a.imaginary + b.real};
  z[mirror] = {a.real + b.imaginary, b.real - a.imaginary};
}

/// Reads bin `bin` of every second channel of one transform, starting at `first`.
FftSample read_bin(const float* real, const float* imaginary, std::size_t channels, std::size_t first) noexcept {
  FftSample of{};
  for (std::size_t channel = first; channel < channels; channel += 2) {
    of.real[channel / 2] = real[channel];
    of.imaginary[channel / 2] = imaginary[channel];
  }
  return of;
}

void write_bin(const FftSample& from, std::size_t first, std::size_t channels, float* real, float* imaginary) noexcept {
  for (std::size_t channel = first; channel < channels; channel += 2) {
    real[channel] = static_cast<float>(from.real[channel / 2]);
    imaginary[channel] = static_cast<float>(from.imaginary[channel / 2]);
  }
}

/// Makes one space per thread. Allocates before the parallel region, which an exception must not leave.
std::vector<BlockSpace> make_spaces(std::size_t samples, std::size_t blocks) {
  const auto threads = std::min(static_cast<std::size_t>(omp_get_max_threads()), blocks);
  std::vector<BlockSpace> spaces;
  for (std::size_t thread = 0; thread < threads; ++thread) spaces.emplace_back(samples);
  return spaces;
}

class CpuSpectralOps final : public SpectralOps {
 public:
  void power(BackendView<const float, 3> states, Transform transform, std::size_t first_token,
             std::span<double> power) override;
  void filter(BackendView<const float, 3> x, Transform transform, std::size_t first_token, std::size_t last_token,
              TensorView<const double, 2> gains, BackendView<float, 4> out) override;
  void analyze(BackendView<const float, 3> x, const BinGrid& grid, BackendView<float, 4> spectrum) override;
  void synthesize(BackendView<const float, 4> spectrum, const BinGrid& grid, BackendView<float, 3> x) override;
  void add_sample(BackendView<const float, 3> x, std::size_t token, std::size_t place, const BinGrid& grid,
                  BackendView<float, 4> spectrum) override;
  void dct_resample(TensorView<const float, 2> states, std::size_t first_bin, double scale,
                    TensorView<float, 2> out) override {
    kvs::dct_resample(states, first_bin, scale, out);
  }

 private:
  FftPlans plans_;
};

void CpuSpectralOps::power(BackendView<const float, 3> states, Transform transform, std::size_t first_token,
                           std::span<double> power) {
  const std::size_t heads = states.extent(0), tokens = states.extent(1), head_dim = states.extent(2);
  if (first_token >= tokens || head_dim == 0) {
    throw Error(ErrorCode::kUsage, "power spectrum",
                "found " + std::to_string(tokens) + " tokens, expected more than " + std::to_string(first_token));
  }
  const std::size_t samples = tokens - first_token, bins = bins_of(transform, samples), row = head_dim;
  if (power.size() != heads * bins) throw Error(ErrorCode::kInternal, "power spectrum", "wrong size of the result");
  const FftPlan& plan = plans_.get(samples);
  const std::vector<Complex> turns = half_turns(samples, -1);
  const std::vector<ChannelBlock> blocks = cut_blocks(heads, head_dim);
  std::vector<double> sums(blocks.size() * samples);  // one per block: threads do not change the order of sums
  std::vector<BlockSpace> spaces = make_spaces(samples, blocks.size());
  const float* const data = states.data() + first_token * row;
#pragma omp parallel for schedule(dynamic) num_threads(static_cast <int>(spaces.size()))
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const ChannelBlock& block = blocks[b];
    const BlockSpace& space = spaces[static_cast<std::size_t>(omp_get_thread_num())];
    load_block(data + block.head * tokens * row + block.first_channel, row, block, transform, samples, space);
    for (std::size_t t = 0; t < block.transforms(); ++t) {
      plan.run(space.of(t), FftDirection::kForward);
      if (transform == Transform::kDct) {
        add_dct_power(space.of(t), turns, samples, &sums[b * samples]);
      } else {
        add_dft_power(space.of(t), samples, &sums[b * samples]);
      }
    }
  }
  const std::size_t per_head = heads == 0 ? 0 : blocks.size() / heads;
  for (std::size_t head = 0; head < heads; ++head) {
    const std::span<double> sum = std::span(sums).subspan(head * per_head * samples, samples);
    for (std::size_t b = 1; b < per_head; ++b) {
      for (std::size_t k = 0; k < samples; ++k) sum[k] += sum.data()[b * samples + k];
    }
    finish_power(transform, sum, head_dim, power.subspan(head * bins, bins));
  }
}

void CpuSpectralOps::filter(BackendView<const float, 3> x, Transform transform, std::size_t first_token,
                            std::size_t last_token, TensorView<const double, 2> gains, BackendView<float, 4> out) {
  const std::size_t heads = x.extent(0), tokens = x.extent(1), head_dim = x.extent(2);
  const std::size_t row = head_dim, members = gains.extent(0);
  if (last_token > tokens || first_token >= last_token) {
    throw Error(ErrorCode::kUsage, "spectral filter",
                "found tokens [" + std::to_string(first_token) + ", " + std::to_string(last_token) +
                    "), expected a part of " + std::to_string(tokens));
  }
  const std::size_t samples = last_token - first_token;
  if (gains.extent(1) != bins_of(transform, samples) ||
      out.shape() != std::array<std::size_t, 4>{members, heads, tokens, head_dim}) {
    throw Error(ErrorCode::kInternal, "spectral filter", "gains, input and output do not fit together");
  }
  const FftPlan& plan = plans_.get(samples);
  const std::vector<Complex> turns = half_turns(samples, 1);
  const std::vector<ChannelBlock> blocks = cut_blocks(heads, head_dim);
  std::vector<BlockSpace> spaces = make_spaces(samples, blocks.size());
  const double scale = 1.0 / static_cast<double>(samples);
#pragma omp parallel for schedule(dynamic) num_threads(static_cast <int>(spaces.size()))
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const ChannelBlock& block = blocks[b];
    const BlockSpace& space = spaces[static_cast<std::size_t>(omp_get_thread_num())];
    const float* const from = x.data() + block.head * tokens * row + block.first_channel;
    // Reads the whole block before writing any of it, because x may be a member of out.
    load_block(from + first_token * row, row, block, transform, samples, space);
    for (std::size_t t = 0; t < block.transforms(); ++t) plan.run(space.of(t), FftDirection::kForward);
    for (std::size_t member = 0; member < members; ++member) {
      const double* const gain = gains.data() + member * gains.extent(1);
      float* const to = out.slice(member).data() + block.head * tokens * row + block.first_channel;
      for (std::size_t t = 0; t < block.transforms(); ++t) {
        FftSample* const work = space.work.data();
        if (transform == Transform::kDct) {
          apply_dct_gain(space.of(t), turns, gain, samples, work);
        } else {
          apply_dft_gain(space.of(t), gain, samples, work);
        }
        plan.run(work, FftDirection::kBackward);
        store_signals(work, scale, transform, samples, to + first_token * row + t * kTransformChannels, row,
                      block.channels_of(t), samples);
      }
      copy_rows(from, to, row, block, 0, first_token);
      copy_rows(from, to, row, block, last_token, tokens);
    }
  }
}

void CpuSpectralOps::analyze(BackendView<const float, 3> x, const BinGrid& grid, BackendView<float, 4> spectrum) {
  check_grid(x.shape(), spectrum.shape(), grid);
  const std::size_t heads = x.extent(0), tokens = x.extent(1), row = x.extent(2), samples = grid.samples;
  const FftPlan& plan = plans_.get(samples);
  const std::vector<ChannelBlock> blocks = cut_blocks(heads, row);
  std::vector<BlockSpace> spaces = make_spaces(samples, blocks.size());
#pragma omp parallel for schedule(dynamic) num_threads(static_cast <int>(spaces.size()))
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const ChannelBlock& block = blocks[i];
    const BlockSpace& space = spaces[static_cast<std::size_t>(omp_get_thread_num())];
    load_block(x.data() + block.head * tokens * row + block.first_channel, row, block, Transform::kDft, tokens, space);
    for (std::size_t t = 0; t < block.transforms(); ++t) {
      plan.run(space.of(t), FftDirection::kForward);
      for (std::size_t bin = 0; bin < grid.bins.size(); ++bin) {
        FftSample even, odd;
        split_bin(space.of(t), grid.bins.data()[bin], samples, even, odd);
        const auto [real, imaginary] = parts_of(spectrum, block.head, bin);
        const std::size_t first = block.first_channel + t * kTransformChannels;
        write_bin(even, 0, block.channels_of(t), real + first, imaginary + first);
        write_bin(odd, 1, block.channels_of(t), real + first, imaginary + first);
      }
    }
  }
}

void CpuSpectralOps::synthesize(BackendView<const float, 4> spectrum, const BinGrid& grid, BackendView<float, 3> x) {
  check_grid(x.shape(), spectrum.shape(), grid);
  const std::size_t heads = x.extent(0), tokens = x.extent(1), row = x.extent(2), samples = grid.samples;
  const FftPlan& plan = plans_.get(samples);
  const std::vector<ChannelBlock> blocks = cut_blocks(heads, row);
  std::vector<BlockSpace> spaces = make_spaces(samples, blocks.size());
#pragma omp parallel for schedule(dynamic) num_threads(static_cast <int>(spaces.size()))
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const ChannelBlock& block = blocks[i];
    const BlockSpace& space = spaces[static_cast<std::size_t>(omp_get_thread_num())];
    for (std::size_t t = 0; t < block.transforms(); ++t) {
      FftSample* const work = space.work.data();
      std::fill_n(work, samples, FftSample{});
      const std::size_t first = block.first_channel + t * kTransformChannels, channels = block.channels_of(t);
      for (std::size_t bin = 0; bin < grid.bins.size(); ++bin) {
        const auto [real, imaginary] = parts_of(spectrum, block.head, bin);
        join_bin(read_bin(real + first, imaginary + first, channels, 0),
                 read_bin(real + first, imaginary + first, channels, 1), grid.bins.data()[bin], samples, work);
      }
      plan.run(work, FftDirection::kBackward);
      store_signals(work, 1.0 / static_cast<double>(samples), Transform::kDft, samples,
                    x.data() + block.head * tokens * row + first, row, channels, tokens);
    }
  }
}

void CpuSpectralOps::add_sample(BackendView<const float, 3> x, std::size_t token, std::size_t place,
                                const BinGrid& grid, BackendView<float, 4> spectrum) {
  check_grid({x.extent(0), 1, x.extent(2)}, spectrum.shape(), grid);
  const std::size_t heads = x.extent(0), tokens = x.extent(1), head_dim = x.extent(2);
#pragma omp parallel for schedule(static)
  for (std::size_t bin = 0; bin < grid.bins.size(); ++bin) {
    const std::size_t turns = grid.bins.data()[bin] * place % grid.samples;
    const double angle = -2 * std::numbers::pi * static_cast<double>(turns) / static_cast<double>(grid.samples);
    const auto cosine = static_cast<float>(std::cos(angle)), sine = static_cast<float>(std::sin(angle));
    for (std::size_t head = 0; head < heads; ++head) {
      const float* const from = x.data() + (head * tokens + token) * head_dim;
      const auto [real, imaginary] = parts_of(spectrum, head, bin);
      for (std::size_t channel = 0; channel < head_dim; ++channel) {
        real[channel] += from[channel] * cosine;
        imaginary[channel] += from[channel] * sine;
      }
    }
  }
}

}  // namespace

std::unique_ptr<SpectralOps> make_cpu_spectral_ops() { return std::make_unique<CpuSpectralOps>(); }

std::unique_ptr<SpectralOps> CpuBackend::make_spectral_ops() { return make_cpu_spectral_ops(); }

}  // namespace kvs::inline kernels
