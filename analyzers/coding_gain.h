#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analyzers/moments.h"

namespace kvs {

/// Tokens that a transform along tokens takes together.
inline constexpr std::array<std::size_t, 4> kBlockTokens{2, 4, 8, 16};
/// Nothing below the noise of a code of so many bits counts: each state's variances grow by 4^−8 of their mean. It
/// bounds what constant channels and dependent ones can save.
inline constexpr double kFinestBits = 8;
/// The rate at which idle_share is taken, in bits a real.
inline constexpr double kIdleRate = 2;

/// What each step saves in bits a real over the one before, at equal distortion and high rate: half the log2 ratio of
/// the (geometric) mean of the variances before and after it. None is negative.
struct StepGains {
  double mean = 0;             // each channel's mean subtracted, from second moments to variances (arithmetic means)
  double channels = 0;         // bits by channel: arithmetic to geometric mean of the channels' variances
  double head = 0;             // KLT of each head
  std::vector<double> tokens;  // [block length] DCT of a block in the heads' KLT bases, over those
  std::vector<double> tokens_by_channel;  // [block length] the same of channels as they are, over `channels`
};

struct StateGains {
  StepGains layer;               // arithmetic means run over all channels of the layer …
  std::vector<StepGains> heads;  // [kv_head] … or of a head
  /// The same where errors cost what they do in use; no tokens. Empty without weights.
  std::optional<StepGains> weighted_layer;
  std::vector<StepGains> weighted_heads;
  /// KLT of all heads of the layer over those of each. Absent for k_post, and with fewer than 2 tokens a channel.
  std::optional<double> whole;
  /// Share of the components of the heads' KLTs that get no bits at kIdleRate (reverse water-filling over the layer).
  double idle_share = 0;
};

struct LayerGains {
  ByState<StateGains> states;
  std::optional<double> joint;  // one KLT of k_pre and v over one of each, in bits a real of both
};

/// What a unit error of a state costs where it is read: the quadratic forms A_h of E‖error‖² = eᵀ A_h e, as far as
/// gains depend on them.
struct StateWeights {
  std::vector<double> diagonal;          // [kv_head, head_dim]
  std::vector<double> log2_determinant;  // [kv_head]
};
/// Of keys: A_h is diagonal, the energy of the queries in each RoPE chunk, as a score's error is q·e.
StateWeights query_weights(const LayerMoments& moments, const MomentShape& shape);
/// Of values: A_h = Σ W_oᵀ W_o over the query heads of the group.
/// @param grams  [query_head][head_dim, head_dim]
StateWeights output_gram_weights(std::span<const std::vector<double>> grams, std::size_t kv_heads,
                                 std::size_t head_dim);

/// The weights of a layer's states, as far as they are known.
using GainWeights = ByState<std::optional<StateWeights>>;

/// Coding gains of a layer from its moments over `documents` documents (docs/spectra.md derives them), about the means
/// or about zero. Weights change `mean`, `channels` and `head`; in the steps after those they cancel.
/// Needs at least 2 · head_dim tokens. @throws Error kInternal otherwise; kData if a matrix has no Cholesky factor.
LayerGains coding_gains(const LayerMoments& moments, const MomentShape& shape, std::size_t documents, bool mean_removed,
                        const GainWeights& weights = {});

/// What geometric means lose on average, in bits a real, because the KLT of `width` channels is measured on so many
/// independent Gaussian tokens: (1 / 2 ln 2) · mean over i < width of ln(ν/2) − ψ((ν − i)/2), ν = tokens − 1, from the
/// expected log determinant of a Wishart matrix. Tokens that resemble each other count for fewer.
double optimism(std::size_t width, double tokens);

/// Share of components that reverse water-filling gives no bits at `rate` bits a component. 0 if there is no variance.
double idle_share(std::span<const double> variances, double rate);

}  // namespace kvs
