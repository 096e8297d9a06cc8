// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analyzers/moments.h"

namespace kvs::inline analyzers {

/// Block lengths of transforms along tokens.
inline constexpr std::array<std::size_t, 4> kBlockTokens{2, 4, 8, 16};
/// Bits of the code whose noise is the lower limit of variances: each state's variances grow by 4^−8 of their mean.
/// This bounds the gain of constant and dependent channels.
inline constexpr double kFinestBits = 8;
/// The rate of idle_share, in bits per value.
inline constexpr double kIdleRate = 2;

/// The gain of each step over the previous one, in bits per value, at equal distortion and high rate. It is half the
/// log2 ratio of the (geometric) mean of the variances before and after the step. Never negative.
struct StepGains {
  double mean = 0;             // subtracting each channel's mean: from second moments to variances (arithmetic means)
  double channels = 0;         // bits by channel: from the arithmetic to the geometric mean of the channels' variances
  double head = 0;             // KLT of each head
  std::vector<double> tokens;  // [block length] DCT of a block in the heads' KLT bases, over `head`
  std::vector<double> tokens_by_channel;  // [block length] DCT of the channels themselves, over `channels`
};

struct StateGains {
  StepGains layer;               // arithmetic means over all channels of the layer
  std::vector<StepGains> heads;  // [kv_head], arithmetic means over the channels of a head
  /// Steps with errors weighted by their effect in attention, without token steps. Empty without weights.
  std::optional<StepGains> weighted_layer;
  std::vector<StepGains> weighted_heads;
  /// KLT of all heads of the layer over the KLT of each head. Absent for k_post and below 2 tokens per channel.
  std::optional<double> whole;
  /// Share of the components of the heads' KLTs with no bits at kIdleRate (reverse water-filling over the layer).
  double idle_share = 0;
};

struct LayerGains {
  ByState<StateGains> states;
  std::optional<double> joint;  // one KLT of k_pre and v over one of each, in bits per value of both
};

/// Cost of a unit error of a state in attention: the parts of A_h in E‖error‖² = eᵀ A_h e on which gains depend.
struct StateWeights {
  std::vector<double> diagonal;          // [kv_head, head_dim]
  std::vector<double> log2_determinant;  // [kv_head]
};
/// Returns weights of keys: A_h is diagonal, the queries' energy in each RoPE chunk, because a score's error is q·e.
StateWeights query_weights(const LayerMoments& moments, const MomentShape& shape);
/// Returns weights of values: A_h = Σ W_oᵀ W_o over the query heads of the group.
/// @param grams  [query_head][head_dim, head_dim]
StateWeights output_gram_weights(std::span<const std::vector<double>> grams, std::size_t kv_heads,
                                 std::size_t head_dim);

/// The known weights of a layer's states.
using GainWeights = ByState<std::optional<StateWeights>>;

/// Returns coding gains of a layer from its moments over `documents` documents (derived in docs/spectra.md), about the
/// means or about zero. Weights change `mean`, `channels` and `head`; they cancel in the later steps. Needs at least 2
/// · head_dim tokens. @throws Error kInternal otherwise; kData if a matrix has no Cholesky factor.
LayerGains coding_gains(const LayerMoments& moments, const MomentShape& shape, std::size_t documents, bool mean_removed,
                        const GainWeights& weights = {});

/// Returns the mean gain, in bits per value, that the KLT of `width` channels seems to have on `tokens` independent
/// Gaussian tokens: (1 / 2 ln 2) · mean over i < width of ln(ν/2) − ψ((ν − i)/2), ν = tokens − 1, from the expected log
/// determinant of a Wishart matrix. Correlated tokens count as fewer tokens.
double optimism(std::size_t width, double tokens);

/// Returns the share of components without bits after reverse water-filling at `rate` bits a component; 0 without
/// variance.
double idle_share(std::span<const double> variances, double rate);

}  // namespace kvs::inline analyzers
