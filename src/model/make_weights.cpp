// SPDX-License-Identifier: Apache-2.0
#include "model/make_weights.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/latent_weights.h"

namespace kvs::inline model {

namespace {

void multiply(std::span<float> values, float factor) {
  if (factor == 1) return;
  for (float& value : values) value *= factor;
}

BackendTensor<float, 1> make_vector(Backend& backend, const std::vector<float>& values) {
  BackendTensor<float, 1> vector(backend, {values.size()});
  backend.upload(vector.view().data(), values.data(), vector.bytes());
  return vector;
}

/// @param factor  multiplies the output
MlpWeights make_mlp(const Making& making, TensorRole gate, TensorRole up, TensorRole down, std::size_t expert = 0,
                    float factor = 1) {
  const bool gated = making.tensors.has(gate, making.layer);
  return {gated ? make_fused(making, std::array{gate, up}, 1, expert) : make_fused(making, std::array{up}, 1, expert),
          make_fused(making, std::array{down}, making.residual_scale * factor, expert)};
}

/// Returns the values of a vector that a layer may lack.
std::vector<float> vector_of(const Making& making, TensorRole role) {
  return making.tensors.has(role, making.layer) ? making.tensors.vector(role, making.layer) : std::vector<float>();
}

TurnedNorm make_turned_norm(const Making& making) {
  std::vector<float> gain = making.tensors.vector(TensorRole::kQueryNorm, making.layer);
  const std::vector<float> key = making.tensors.vector(TensorRole::kKeyNorm, making.layer);
  for (std::size_t channel = 0; channel < gain.size(); ++channel) gain[channel] *= key[channel];
  return {make_vector(making.backend, gain), make_vector(making.backend, std::vector<float>(key.size(), 1.0F))};
}

/// Sets the norms of queries and keys that follow RoPE.
void set_rotated_norms(const Making& making, const AttentionConfig& attention, LayerWeights& weights) {
  if (attention.unit_norms) {
    for (BackendTensor<float, 1>* const gain : {&weights.query_norm.gain, &weights.key_norm.gain,
                                                &weights.turned_norm.query_gain, &weights.turned_norm.key_gain})
      *gain = make_vector(making.backend, std::vector<float>(attention.head_dim, 1.0F));
  } else if (making.tensors.has(TensorRole::kQueryNorm, making.layer)) {
    weights.turned_norm = make_turned_norm(making);
  }
}

ExpertWeights make_experts(const Making& making) {
  using enum TensorRole;
  const ModelTensors& tensors = making.tensors;
  Making router = making;
  router.zero = nullptr;
  ExpertWeights weights;
  weights.router = make_fused(router, std::array{kRouter});
  if (tensors.has(kRouterBias, making.layer)) weights.router_bias = tensors.vector(kRouterBias, making.layer);
  const std::vector<float> scales = vector_of(making, kExpertScale);
  for (std::size_t expert = 0; expert < tensors.experts(making.layer); ++expert)
    weights.experts.push_back(
        make_mlp(making, kExpertGate, kExpertUp, kExpertDown, expert, scales.empty() ? 1 : scales[expert]));
  const auto channels = static_cast<float>(weights.router->columns());
  weights.router_norm = make_norm(making, kRouterNorm, 1 / std::sqrt(channels));
  weights.input_norm = make_norm(making, kExpertsInputNorm);
  weights.output_norm = make_norm(making, kExpertsOutputNorm);
  weights.dense_output_norm = make_norm(making, kDenseOutputNorm);
  if (tensors.has(kSharedDown, making.layer)) weights.shared = make_mlp(making, kSharedGate, kSharedUp, kSharedDown);
  if (tensors.has(kLatentIn, making.layer)) {
    weights.latent_in = make_fused(making, std::array{kLatentIn});
    weights.latent_out = make_fused(making, std::array{kLatentOut});
  }
  if (tensors.has(kSharedScale, making.layer)) weights.shared_scale = make_fused(router, std::array{kSharedScale});
  return weights;
}

/// Returns the taps of the convolution, stored as [channel, tap].
BackendTensor<float, 2> make_taps(const Making& making) {
  const TensorRows stored = making.tensors.rows(TensorRole::kMixerTaps, making.layer);
  const std::size_t channels = stored.rows(), taps = stored.columns();
  std::vector<float> by_channel(channels * taps), by_tap(channels * taps);
  stored.read(0, channels, by_channel);
  for (std::size_t channel = 0; channel < channels; ++channel)
    for (std::size_t tap = 0; tap < taps; ++tap) by_tap[tap * channels + channel] = by_channel[channel * taps + tap];
  BackendTensor<float, 2> made(making.backend, {taps, channels});
  making.backend.upload(made.view().data(), by_tap.data(), made.bytes());
  return made;
}

/// Returns the projections of a recurrent block's input in the order in which its kind reads them.
std::vector<TensorRole> mixer_inputs(RecurrenceConfig::Kind kind) {
  using enum TensorRole;
  switch (kind) {
    case RecurrenceConfig::Kind::kMamba2:
      return {kMixerValue, kMixerKey, kMixerQuery, kMixerGate, kMixerStep};
    case RecurrenceConfig::Kind::kShortConvolution:
      return {kMixerValue, kMixerFactor, kMixerGate};
    default:
      return {kMixerQuery, kMixerKey, kMixerValue, kMixerGate, kMixerStrength, kMixerStep};
  }
}

/// Without keys a layer reads another layer's; without values they come from the keys' rows.
std::unique_ptr<Weight> make_qkv(const Making& making) {
  using enum TensorRole;
  if (!making.tensors.has(kKey, making.layer)) return make_fused(making, std::array{kQuery});
  const bool one_row = !making.tensors.has(kValue, making.layer);
  return make_fused(making, std::array{kQuery, kKey, one_row ? kKey : kValue});
}

TokenIndexWeights make_index(const Making& making) {
  using enum TensorRole;
  Making layer_norm = making;
  layer_norm.arithmetic.norm = NormKind::kLayer;
  return {make_fused(making, std::array{kIndexQuery}), make_fused(making, std::array{kIndexKey}),
          make_norm(layer_norm, kIndexKeyNorm), make_fused(making, std::array{kIndexWeight})};
}

LatentWeights make_latent(const Making& making, const AttentionConfig& attention) {
  using enum TensorRole;
  Backend& backend = making.backend;
  const ModelTensors& tensors = making.tensors;
  LatentWeights weights;
  if (attention.latent.query_rank > 0) {
    weights.query_latent = make_fused(making, std::array{kQueryLatent});
    weights.query_norm = make_vector(backend, tensors.vector(kQueryLatentNorm, making.layer));
  }
  weights.query = make_fused(making, std::array{kPlainQuery, kQuery});
  weights.row = make_fused(making, std::array{kKey, kKvLatent});
  weights.norm = make_vector(backend, tensors.vector(kKvLatentNorm, making.layer));
  const bool transposed = tensors.has(kLatentKeyMap, making.layer);
  weights.key_maps = make_key_maps(backend, tensors.rows(transposed ? kLatentKeyMap : kLatentKey, making.layer),
                                   transposed, attention);
  weights.value_maps = make_value_maps(backend, tensors.rows(kLatentValue, making.layer), attention);
  if (tensors.has(kIndexKey, making.layer)) weights.index = make_index(making);
  return weights;
}

RecurrenceWeights make_recurrence(const Making& making, RecurrenceConfig::Kind kind) {
  using enum TensorRole;
  const auto vector = [&](TensorRole role) {
    const bool stored = making.tensors.has(role, making.layer);
    return stored ? make_vector(making.backend, making.tensors.vector(role, making.layer)) : BackendTensor<float, 1>();
  };
  const std::vector<float> bias = making.tensors.bias(kMixerTaps, making.layer);
  RecurrenceWeights weights;
  weights.input = make_fused(making, mixer_inputs(kind));
  weights.taps = make_taps(making);
  if (!bias.empty()) weights.taps_bias = make_vector(making.backend, bias);
  weights.decay = vector(kMixerDecay);
  weights.step_bias = vector(kMixerStepBias);
  weights.skip = vector(kMixerSkip);
  weights.norm = vector(kMixerNorm);
  weights.output = make_fused(making, std::array{kMixerOutput}, making.residual_scale);
  return weights;
}

/// Returns the values of a small matrix, row by row.
std::vector<float> matrix_of(const Making& making, TensorRole role) {
  const TensorRows rows = making.tensors.rows(role, making.layer);
  std::vector<float> values(rows.rows() * rows.columns());
  rows.read(0, rows.rows(), values);
  return values;
}

StreamWeights make_streams(const Making& making) {
  using enum TensorRole;
  StreamWeights weights;
  weights.router = make_fused(making, std::array{kStreamRouter});
  weights.router_norm = make_norm(making, kStreamRouterNorm, 1 / static_cast<float>(weights.router->columns()));
  weights.prediction = matrix_of(making, kStreamPrediction);
  weights.correction = matrix_of(making, kStreamCorrection);
  return weights;
}

/// Makes a weight whose columns are multiplied by `factors`.
std::unique_ptr<Weight> make_scaled(const Making& making, TensorRole role, const std::vector<float>& factors) {
  const TensorRows rows = making.tensors.rows(role, making.layer);
  const auto read = [&](std::size_t first, std::size_t count, std::span<float> out) {
    rows.read(first, count, out);
    for (std::size_t at = 0; at < out.size(); ++at) out[at] *= factors[at % factors.size()];
  };
  return making.backend.make_weight({.rows = rows.rows(), .columns = rows.columns(), .read = read, .bias = {}});
}

LayerInputWeights make_layer_input(const Making& making) {
  using enum TensorRole;
  const std::vector<float> scale = vector_of(making, kStreamScale);
  return {scale.empty() ? make_fused(making, std::array{kInputGate}) : make_scaled(making, kInputGate, scale),
          make_fused(making, std::array{kInputOutput}), make_norm(making, kInputOutputNorm)};
}

}  // namespace

std::unique_ptr<Weight> make_fused(const Making& making, std::span<const TensorRole> roles, float factor,
                                   std::size_t expert) {
  Backend& backend = making.backend;
  const ModelTensors& tensors = making.tensors;
  const std::size_t layer = making.layer;
  std::vector<std::string>* const zero = making.zero;
  std::vector<TensorRows> parts;
  std::vector<float> bias;
  std::size_t rows = 0;
  bool biased = false;
  for (const TensorRole role : roles) {
    parts.push_back(tensors.rows(role, layer, expert));
    std::vector<float> part_bias = tensors.bias(role, layer, expert);
    biased = biased || !part_bias.empty();
    part_bias.resize(parts.back().rows());
    multiply(part_bias, factor);
    bias.insert(bias.end(), part_bias.begin(), part_bias.end());
    rows += parts.back().rows();
  }
  WeightSource source{.rows = rows, .columns = parts.front().columns(), .read = {}, .bias = {}};
  if (biased) source.bias = bias;
  std::vector<std::uint8_t> says(parts.size());  // 1: the projection has a weight other than zero
  source.read = [&parts, &says, factor](std::size_t first, std::size_t count, std::span<float> out) {
    for (std::size_t n = 0; n < parts.size(); ++n) {
      const TensorRows& part = parts[n];
      const std::size_t here = first < part.rows() ? std::min(count, part.rows() - first) : 0;
      const std::span<float> values = out.first(here * part.columns());
      if (here > 0) part.read(first, here, values);
      multiply(values, factor);
      if (says[n] == 0) says[n] = std::ranges::any_of(values, [](float value) { return value != 0; }) ? 1 : 0;
      out = out.subspan(here * part.columns());
      first -= std::min(first, part.rows());
      count -= here;
    }
  };
  auto weight = backend.make_weight(source);
  if (zero != nullptr)
    for (std::size_t n = 0; n < parts.size(); ++n)
      if (says[n] == 0) zero->push_back(tensors.name(roles[n], layer, expert));
  return weight;
}

NormWeights make_norm(const Making& making, TensorRole role, float factor) {
  NormWeights norm;
  if (!making.tensors.has(role, making.layer)) return norm;
  std::vector<float> gain = making.tensors.vector(role, making.layer), bias = making.tensors.bias(role, making.layer);
  multiply(gain, factor);
  multiply(bias, factor);
  norm.gain = make_vector(making.backend, gain);
  if (making.arithmetic.norm == NormKind::kLayer) bias.resize(gain.size());  // a family without biases
  if (!bias.empty()) norm.bias = make_vector(making.backend, bias);
  return norm;
}

LayerWeights make_layer(const Making& making, const LayerConfig& blocks) {
  using enum TensorRole;
  LayerWeights weights;
  const auto norm = [&](TensorRole role) { return make_norm(making, role); };
  weights.attention_norm = norm(kAttentionNorm);
  weights.feed_forward_norm = norm(kFeedForwardNorm);
  weights.query_norm = norm(kQueryNorm);
  weights.key_norm = norm(kKeyNorm);
  weights.attention_output_norm = norm(kAttentionOutputNorm);
  weights.feed_forward_output_norm = norm(kFeedForwardOutputNorm);
  if (making.arithmetic.norms_after_rope) set_rotated_norms(making, blocks.attention, weights);
  if (making.tensors.has(kSinks, making.layer))
    weights.sinks = make_vector(making.backend, making.tensors.vector(kSinks, making.layer));
  if (blocks.has_attention()) {
    if (blocks.attention.is_latent())
      weights.latent = make_latent(making, blocks.attention);
    else
      weights.qkv = make_qkv(making);
    weights.output = make_fused(making, std::array{kOutput}, making.residual_scale);
  }
  if (making.value_head_dim > 0)
    weights.value_norm.gain = make_vector(making.backend, std::vector<float>(making.value_head_dim, 1.0F));
  if (making.tensors.has(kOutputGate, making.layer)) weights.output_gate = make_fused(making, std::array{kOutputGate});
  if (blocks.has_recurrence()) weights.recurrence = make_recurrence(making, blocks.recurrence.kind);
  if (making.tensors.experts(making.layer) > 0) weights.sparse = make_experts(making);
  if (making.tensors.has(kDown, making.layer)) weights.mlp = make_mlp(making, kGate, kUp, kDown);
  if (making.tensors.has(kInputGate, making.layer)) weights.input = make_layer_input(making);
  if (making.tensors.has(kStreamRouter, making.layer)) weights.streams = make_streams(making);
  if (making.tensors.has(kLaurelDown, making.layer))
    weights.laurel = {make_fused(making, std::array{kLaurelDown}), make_fused(making, std::array{kLaurelUp}),
                      norm(kLaurelNorm)};
  if (const std::vector<float> scale = vector_of(making, kLayerScale); !scale.empty()) weights.scale = scale.front();
  return weights;
}

}  // namespace kvs::inline model
