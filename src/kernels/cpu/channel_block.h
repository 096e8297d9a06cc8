// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/cpu/fft_plans.h"
#include "kernels/spectral_ops.h"

namespace kvs::cpu {

/// Two real channels form one complex signal a + jb. A block is the 16 channels that share a cache line of a token's
/// row. They are the signals of kBlockTransforms transforms.
inline constexpr std::size_t kBlockChannels = 16;
inline constexpr std::size_t kTransformChannels = 2 * kFftSignals;
inline constexpr std::size_t kBlockTransforms = kBlockChannels / kTransformChannels;

/// Up to kBlockChannels channels of one head.
struct ChannelBlock {
  std::size_t head, first_channel, channels;

  std::size_t transforms() const noexcept { return (channels + kTransformChannels - 1) / kTransformChannels; }
  /// Returns the number of channels of transform `index`. The remaining lanes are zero.
  std::size_t channels_of(std::size_t index) const noexcept {
    return std::min(kTransformChannels, channels - index * kTransformChannels);
  }
};

std::vector<ChannelBlock> cut_blocks(std::size_t heads, std::size_t head_dim);

/// Memory of one thread: the signals of a block and of one transform.
struct BlockSpace {
  explicit BlockSpace(std::size_t length) : samples(length), signals(length * kBlockTransforms), work(length) {}

  FftSample* of(std::size_t transform) const noexcept { return signals.data() + transform * samples; }

  std::size_t samples;
  FftBuffer signals, work;
};

/// Returns the index of sample n in the input of the FFT. For the DCT, even samples come first in ascending order, then
/// odd samples in descending order, so that an N-point FFT yields the DCT-II (Makhoul, IEEE Trans. ASSP 28(1), 1980,
/// 27–34).
inline std::size_t place_of(Transform transform, std::size_t n, std::size_t samples) noexcept {
  if (transform == Transform::kDft) return n;
  return n % 2 == 0 ? n / 2 : samples - 1 - n / 2;
}

/// Reads a block's channels from `tokens` rows, `row_stride` floats apart, as signals of space.samples samples. Samples
/// after the tokens are zero (kDft only).
void load_block(const float* rows, std::size_t row_stride, const ChannelBlock& block, Transform transform,
                std::size_t tokens, const BlockSpace& space) noexcept;

/// Inverse of load_block(): writes `channels` channels of a transform's signals, times `scale`, to rows [0, tokens).
void store_signals(const FftSample* signals, double scale, Transform transform, std::size_t samples, float* rows,
                   std::size_t row_stride, std::size_t channels, std::size_t tokens) noexcept;

/// Copies a block's channels of the rows [first, last). `from` and `to` may be equal.
void copy_rows(const float* from, float* to, std::size_t row_stride, const ChannelBlock& block, std::size_t first,
               std::size_t last) noexcept;

}  // namespace kvs::cpu
