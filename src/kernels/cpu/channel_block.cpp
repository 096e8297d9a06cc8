// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/channel_block.h"

#include <algorithm>

namespace kvs::cpu {
namespace {

/// Lane l holds channels 2l and 2l + 1.
FftSample load_sample(const float* row) noexcept {
  FftSample sample;
  for (std::size_t lane = 0; lane < kFftSignals; ++lane) {
    sample.real[lane] = row[2 * lane];
    sample.imaginary[lane] = row[2 * lane + 1];
  }
  return sample;
}

void store_sample(const FftSample& sample, double scale, float* row) noexcept {
  const FftLanes real = sample.real * scale, imaginary = sample.imaginary * scale;
  for (std::size_t lane = 0; lane < kFftSignals; ++lane) {
    row[2 * lane] = static_cast<float>(real[lane]);
    row[2 * lane + 1] = static_cast<float>(imaginary[lane]);
  }
}

void load_whole_block(const float* rows, std::size_t row_stride, Transform transform, std::size_t tokens,
                      const BlockSpace& space) noexcept {
  for (std::size_t n = 0; n < tokens; ++n) {
    FftSample* const at = space.signals.data() + place_of(transform, n, space.samples);
    for (std::size_t t = 0; t < kBlockTransforms; ++t)
      at[t * space.samples] = load_sample(rows + n * row_stride + t * kTransformChannels);
  }
}

void load_part_of_block(const float* rows, std::size_t row_stride, const ChannelBlock& block, Transform transform,
                        std::size_t tokens, const BlockSpace& space) noexcept {
  float row[kBlockChannels] = {};
  for (std::size_t n = 0; n < tokens; ++n) {
    std::copy_n(rows + n * row_stride, block.channels, row);
    for (std::size_t t = 0; t < block.transforms(); ++t)
      space.of(t)[place_of(transform, n, space.samples)] = load_sample(row + t * kTransformChannels);
  }
}

}  // namespace

std::vector<ChannelBlock> cut_blocks(std::size_t heads, std::size_t head_dim) {
  std::vector<ChannelBlock> blocks;
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t channel = 0; channel < head_dim; channel += kBlockChannels)
      blocks.push_back({head, channel, std::min(kBlockChannels, head_dim - channel)});
  }
  return blocks;
}

void load_block(const float* rows, std::size_t row_stride, const ChannelBlock& block, Transform transform,
                std::size_t tokens, const BlockSpace& space) noexcept {
  if (block.channels == kBlockChannels) {
    load_whole_block(rows, row_stride, transform, tokens, space);
  } else {
    load_part_of_block(rows, row_stride, block, transform, tokens, space);
  }
  for (std::size_t t = 0; t < block.transforms(); ++t)
    std::fill(space.of(t) + tokens, space.of(t) + space.samples, FftSample{});
}

void store_signals(const FftSample* signals, double scale, Transform transform, std::size_t samples, float* rows,
                   std::size_t row_stride, std::size_t channels, std::size_t tokens) noexcept {
  float part[kTransformChannels];
  for (std::size_t n = 0; n < tokens; ++n) {
    const FftSample& sample = signals[place_of(transform, n, samples)];
    float* const row = rows + n * row_stride;
    if (channels == kTransformChannels) {
      store_sample(sample, scale, row);
    } else {
      store_sample(sample, scale, part);
      std::copy_n(part, channels, row);
    }
  }
}

void copy_rows(const float* from, float* to, std::size_t row_stride, const ChannelBlock& block, std::size_t first,
               std::size_t last) noexcept {
  if (from == to) return;
  for (std::size_t n = first; n < last; ++n) std::copy_n(from + n * row_stride, block.channels, to + n * row_stride);
}

}  // namespace kvs::cpu
