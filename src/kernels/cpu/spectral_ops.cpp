#include "kernels/cpu/spectral_ops.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/fft_plans.h"

namespace kvs {
namespace {

using Complex = std::complex<double>;

// Two real channels (2p, 2p + 1) travel as one complex signal z = a + jb, and one thread transforms a block of pairs
// that shares cache lines: 8 pairs are 16 channels, 64 bytes of f32 per token.
constexpr std::size_t kBlockPairs = 8;

/// Where sample n of the signal goes in the input of the FFT. For the DCT: even samples forwards, then odd ones
/// backwards, so that an N-point FFT yields the DCT-II (Makhoul, IEEE Trans. ASSP 28(1), 1980, 27–34).
std::size_t place_of(Transform transform, std::size_t n, std::size_t samples) {
  if (transform == Transform::kDft) return n;
  return n % 2 == 0 ? n / 2 : samples - 1 - n / 2;
}

/// e^{sign·jπk/N}, k = 0 … ⌊N/2⌋: what turns bins (k, N − k) of the reordered signal's FFT into DCT coefficients.
std::vector<Complex> half_turns(std::size_t samples, double sign) {
  std::vector<Complex> turns(samples / 2 + 1);
  for (std::size_t k = 0; k < turns.size(); ++k) {
    turns[k] = std::polar(1.0, sign * std::numbers::pi * static_cast<double>(k) / static_cast<double>(samples));
  }
  return turns;
}

struct Block {
  std::size_t head, first_channel, channels;
  std::size_t pairs() const noexcept { return (channels + 1) / 2; }
};

std::vector<Block> cut_blocks(std::size_t heads, std::size_t head_dim) {
  std::vector<Block> blocks;
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t channel = 0; channel < head_dim; channel += 2 * kBlockPairs) {
      blocks.push_back({head, channel, std::min(2 * kBlockPairs, head_dim - channel)});
    }
  }
  return blocks;
}

/// One thread's buffers: kBlockPairs signals in and out of the FFT, each starting on a 64-byte boundary of its buffer.
struct Workspace {
  explicit Workspace(std::size_t samples)
      : stride((samples + 3) / 4 * 4), signal(stride * kBlockPairs), spectrum(stride * kBlockPairs), work(stride) {}
  std::size_t stride;
  FftBuffer signal, spectrum, work;
};

/// Loads the rows [0, samples) of a block's channels as pairs, each row `row_stride` floats after the last.
template <std::size_t Pairs>
void load_pairs(const float* rows, std::size_t row_stride, Transform transform, std::size_t samples, Workspace& to) {
  for (std::size_t n = 0; n < samples; ++n) {
    const float* row = rows + n * row_stride;
    Complex* at = to.signal.data() + place_of(transform, n, samples);
    for (std::size_t p = 0; p < Pairs; ++p) at[p * to.stride] = {row[2 * p], row[2 * p + 1]};
  }
}

void load_block(const float* rows, std::size_t row_stride, const Block& block, Transform transform, std::size_t samples,
                Workspace& to) {
  if (block.channels == 2 * kBlockPairs) {
    load_pairs<kBlockPairs>(rows, row_stride, transform, samples, to);
    return;
  }
  for (std::size_t n = 0; n < samples; ++n) {
    const float* row = rows + n * row_stride;
    Complex* at = to.signal.data() + place_of(transform, n, samples);
    for (std::size_t c = 0; c < block.channels; c += 2) {
      at[c / 2 * to.stride] = {row[c], c + 1 < block.channels ? row[c + 1] : 0.0};
    }
  }
}

/// The way back: the block's pairs, times `scale`, into the rows [0, samples).
void store_block(const Workspace& from, double scale, std::size_t row_stride, const Block& block, Transform transform,
                 std::size_t samples, float* rows) {
  for (std::size_t n = 0; n < samples; ++n) {
    float* row = rows + n * row_stride;
    const Complex* at = from.signal.data() + place_of(transform, n, samples);
    for (std::size_t c = 0; c + 1 < block.channels; c += 2) {
      row[c] = static_cast<float>(at[c / 2 * from.stride].real() * scale);
      row[c + 1] = static_cast<float>(at[c / 2 * from.stride].imag() * scale);
    }
    if (block.channels % 2 == 1) {
      row[block.channels - 1] = static_cast<float>(at[block.channels / 2 * from.stride].real() * scale);
    }
  }
}

/// Copies a block's channels of the rows [first, last); `from` and `to` may be the same.
void copy_rows(const float* from, float* to, std::size_t row_stride, const Block& block, std::size_t first,
               std::size_t last) {
  if (from == to) return;
  for (std::size_t n = first; n < last; ++n) {
    std::copy_n(from + n * row_stride, block.channels, to + n * row_stride);
  }
}

/// sum[k] += |z[k]|². A pair of real channels has power (|Z[k]|² + |Z[N−k]|²)/2 in bin k; the caller folds at the end.
void add_dft_power(const Complex* z, std::size_t samples, double* sum) {
  const auto* values = reinterpret_cast<const double*>(z);
  for (std::size_t k = 0; k < samples; ++k) {
    sum[k] += values[2 * k] * values[2 * k] + values[2 * k + 1] * values[2 * k + 1];
  }
}

/// Adds the unscaled DCT power of a pair: with u = e^{−jπk/N} Z[k] and v = Z[N−k], bin k has |u + v|²/4 and bin N − k
/// has |u − v|²/4 (both channels together, because the DCT is real and linear).
void add_dct_power(const Complex* z, const std::vector<Complex>& turns, std::size_t samples, double* sum) {
  sum[0] += std::norm(z[0]);
  const auto* values = reinterpret_cast<const double*>(z);
  const auto* turn = reinterpret_cast<const double*>(turns.data());
  for (std::size_t k = 1; 2 * k <= samples; ++k) {
    const std::size_t mirror = samples - k;
    const double re = values[2 * k] * turn[2 * k] - values[2 * k + 1] * turn[2 * k + 1];
    const double im = values[2 * k] * turn[2 * k + 1] + values[2 * k + 1] * turn[2 * k];
    const double vr = values[2 * mirror], vi = values[2 * mirror + 1];
    sum[k] += (re + vr) * (re + vr) + (im + vi) * (im + vi);
    if (mirror != k) sum[mirror] += (re - vr) * (re - vr) + (im - vi) * (im - vi);
  }
}

/// The sums of add_*_power as mean orthonormal power per channel.
void finish_power(Transform transform, std::span<const double> sum, std::size_t channels, std::span<double> power) {
  const std::size_t samples = sum.size();
  const double scale = 1.0 / (static_cast<double>(samples) * static_cast<double>(channels));
  power[0] = sum[0] * scale;
  for (std::size_t k = 1; k < power.size(); ++k) {
    power[k] = (transform == Transform::kDct ? sum[k] : sum[k] + sum[samples - k]) * scale / 2;
  }
}

/// Multiplies DFT bins k and N − k of both channels by gain[k].
void apply_dft_gain(const Complex* z, const double* gain, std::size_t samples, Complex* out) {
  for (std::size_t k = 0; k < samples; ++k) out[k] = z[k] * gain[std::min(k, samples - k)];
}

/// Multiplies DCT coefficient k of both channels by gain[k]. In terms of the reordered signal's FFT that is
/// Z'[k] = (g[k] + g[N−k])/2 · Z[k] + (g[k] − g[N−k])/2 · e^{jπk/N} Z[N−k].
void apply_dct_gain(const Complex* z, const std::vector<Complex>& turns, const double* gain, std::size_t samples,
                    Complex* out) {
  out[0] = z[0] * gain[0];
  for (std::size_t k = 1; 2 * k <= samples; ++k) {
    const std::size_t mirror = samples - k;
    const double sum = (gain[k] + gain[mirror]) / 2, difference = (gain[k] - gain[mirror]) / 2;
    const Complex low = z[k], high = z[mirror];
    out[k] = sum * low + difference * (turns[k] * high);
    if (mirror != k) out[mirror] = sum * high + difference * (std::conj(turns[k]) * low);
  }
}

/// Where the real and imaginary parts of a bin lie in a spectrum [head, bin, 2, head_dim].
template <class T>
std::array<T*, 2> parts_of(const BackendView<T, 4>& spectrum, std::size_t head, std::size_t bin) {
  const std::size_t head_dim = spectrum.extent(3);
  T* const real = spectrum.data() + (head * spectrum.extent(1) + bin) * 2 * head_dim;
  return {real, real + head_dim};
}

/// Bin k of channels a and b from the transform z of a + jb.
void split_bin(const Complex* z, std::size_t k, std::size_t samples, Complex& a, Complex& b) {
  const Complex low = z[k], high = std::conj(z[(samples - k) % samples]);
  a = (low + high) / 2.0;
  b = (low - high) / Complex(0, 2);
}

/// The way back, for bin k and its mirror image.
void join_bin(Complex a, Complex b, std::size_t k, std::size_t samples, Complex* z) {
  const std::size_t mirror = (samples - k) % samples;
  if (mirror == k) {  // of a real signal: real
    z[k] = {a.real(), b.real()};
    return;
  }
  z[k] = a + Complex(0, 1) * b;
  z[mirror] = std::conj(a) + Complex(0, 1) * std::conj(b);
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

 private:
  std::vector<Workspace> make_workspaces(std::size_t samples, std::size_t blocks) const;
  FftPlans plans_;
};

// Allocated before the parallel region, where an exception could not leave.
std::vector<Workspace> CpuSpectralOps::make_workspaces(std::size_t samples, std::size_t blocks) const {
  const auto threads = std::min(static_cast<std::size_t>(omp_get_max_threads()), blocks);
  std::vector<Workspace> workspaces;
  for (std::size_t thread = 0; thread < threads; ++thread) workspaces.emplace_back(samples);
  return workspaces;
}

void CpuSpectralOps::power(BackendView<const float, 3> states, Transform transform, std::size_t first_token,
                           std::span<double> power) {
  const auto [heads, tokens, head_dim] = states.shape();
  if (first_token >= tokens || head_dim == 0) {
    throw Error(ErrorCode::kUsage, "power spectrum",
                "found " + std::to_string(tokens) + " tokens, expected more than " + std::to_string(first_token));
  }
  const std::size_t samples = tokens - first_token, bins = bins_of(transform, samples), row = head_dim;
  if (power.size() != heads * bins) throw Error(ErrorCode::kInternal, "power spectrum", "wrong size of the result");
  const FftPlan& forward = plans_.get(samples, FftDirection::kForward);
  const std::vector<Complex> turns = half_turns(samples, -1);
  const std::vector<Block> blocks = cut_blocks(heads, head_dim);
  std::vector<double> sums(blocks.size() * samples);  // one per block, so that threads do not change the order of sums
  std::vector<Workspace> workspaces = make_workspaces(samples, blocks.size());
  const float* const data = states.data() + first_token * row;
#pragma omp parallel for schedule(dynamic) num_threads(static_cast <int>(workspaces.size()))
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Block& block = blocks[b];
    Workspace& space = workspaces[static_cast<std::size_t>(omp_get_thread_num())];
    load_block(data + block.head * tokens * row + block.first_channel, row, block, transform, samples, space);
    for (std::size_t p = 0; p < block.pairs(); ++p) {
      forward.run(space.signal.data() + p * space.stride, space.work.data());
      if (transform == Transform::kDct) {
        add_dct_power(space.work.data(), turns, samples, &sums[b * samples]);
      } else {
        add_dft_power(space.work.data(), samples, &sums[b * samples]);
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
  const auto [heads, tokens, head_dim] = x.shape();
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
  const FftPlan& forward = plans_.get(samples, FftDirection::kForward);
  const FftPlan& backward = plans_.get(samples, FftDirection::kBackward);
  const std::vector<Complex> turns = half_turns(samples, 1);
  const std::vector<Block> blocks = cut_blocks(heads, head_dim);
  std::vector<Workspace> workspaces = make_workspaces(samples, blocks.size());
  const double scale = 1.0 / static_cast<double>(samples);
#pragma omp parallel for schedule(dynamic) num_threads(static_cast <int>(workspaces.size()))
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Block& block = blocks[b];
    Workspace& space = workspaces[static_cast<std::size_t>(omp_get_thread_num())];
    const float* const from = x.data() + block.head * tokens * row + block.first_channel;
    // All of a block is read before any of it is written: x may be a member of out.
    load_block(from + first_token * row, row, block, transform, samples, space);
    for (std::size_t p = 0; p < block.pairs(); ++p) {
      forward.run(space.signal.data() + p * space.stride, space.spectrum.data() + p * space.stride);
    }
    for (std::size_t member = 0; member < members; ++member) {
      const double* const gain = gains.data() + member * gains.extent(1);
      float* const to = out.slice(member).data() + block.head * tokens * row + block.first_channel;
      for (std::size_t p = 0; p < block.pairs(); ++p) {
        const Complex* spectrum = space.spectrum.data() + p * space.stride;
        if (transform == Transform::kDct) {
          apply_dct_gain(spectrum, turns, gain, samples, space.work.data());
        } else {
          apply_dft_gain(spectrum, gain, samples, space.work.data());
        }
        backward.run(space.work.data(), space.signal.data() + p * space.stride);
      }
      store_block(space, scale, row, block, transform, samples, to + first_token * row);
      copy_rows(from, to, row, block, 0, first_token);
      copy_rows(from, to, row, block, last_token, tokens);
    }
  }
}

void CpuSpectralOps::analyze(BackendView<const float, 3> x, const BinGrid& grid, BackendView<float, 4> spectrum) {
  check_grid(x.shape(), spectrum.shape(), grid);
  const std::size_t heads = x.extent(0), tokens = x.extent(1), row = x.extent(2), samples = grid.samples;
  const FftPlan& forward = plans_.get(samples, FftDirection::kForward);
  const std::vector<Block> blocks = cut_blocks(heads, row);
  std::vector<Workspace> workspaces = make_workspaces(samples, blocks.size());
#pragma omp parallel for schedule(dynamic) num_threads(static_cast <int>(workspaces.size()))
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    Workspace& space = workspaces[static_cast<std::size_t>(omp_get_thread_num())];
    load_block(x.data() + block.head * tokens * row + block.first_channel, row, block, Transform::kDft, tokens, space);
    for (std::size_t p = 0; p < block.pairs(); ++p) {
      Complex* const signal = space.signal.data() + p * space.stride;
      std::fill(signal + tokens, signal + samples, Complex());
      forward.run(signal, space.work.data());
      for (std::size_t bin = 0; bin < grid.bins.size(); ++bin) {
        Complex pair[2];
        split_bin(space.work.data(), grid.bins.data()[bin], samples, pair[0], pair[1]);
        const auto [real, imaginary] = parts_of(spectrum, block.head, bin);
        for (std::size_t c = 2 * p; c < std::min(2 * p + 2, block.channels); ++c) {
          real[block.first_channel + c] = static_cast<float>(pair[c % 2].real());
          imaginary[block.first_channel + c] = static_cast<float>(pair[c % 2].imag());
        }
      }
    }
  }
}

void CpuSpectralOps::synthesize(BackendView<const float, 4> spectrum, const BinGrid& grid, BackendView<float, 3> x) {
  check_grid(x.shape(), spectrum.shape(), grid);
  const std::size_t heads = x.extent(0), tokens = x.extent(1), row = x.extent(2), samples = grid.samples;
  const FftPlan& backward = plans_.get(samples, FftDirection::kBackward);
  const std::vector<Block> blocks = cut_blocks(heads, row);
  std::vector<Workspace> workspaces = make_workspaces(samples, blocks.size());
#pragma omp parallel for schedule(dynamic) num_threads(static_cast <int>(workspaces.size()))
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    Workspace& space = workspaces[static_cast<std::size_t>(omp_get_thread_num())];
    for (std::size_t p = 0; p < block.pairs(); ++p) {
      std::fill_n(space.work.data(), samples, Complex());
      const std::size_t first = block.first_channel + 2 * p, second = 2 * p + 1 < block.channels ? first + 1 : first;
      for (std::size_t bin = 0; bin < grid.bins.size(); ++bin) {
        const auto [real, imaginary] = parts_of(spectrum, block.head, bin);
        join_bin({real[first], imaginary[first]}, {real[second], imaginary[second]}, grid.bins.data()[bin], samples,
                 space.work.data());
      }
      backward.run(space.work.data(), space.signal.data() + p * space.stride);
    }
    store_block(space, 1.0 / static_cast<double>(samples), row, block, Transform::kDft, tokens,
                x.data() + block.head * tokens * row + block.first_channel);
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

}  // namespace kvs
