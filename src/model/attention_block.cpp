// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <numbers>
#include <string>

#include "core/error.h"
#include "core/interrupt.h"
#include "model/forward_pass.h"
#include "model/recorded_states.h"

namespace kvs::inline model {

namespace {

/// Members [first, first + count) of head-major states.
BackendView<float, 4> member_range(const BackendView<float, 4>& states, std::size_t first, std::size_t count) {
  std::array<std::size_t, 4> shape = states.shape();
  const std::size_t member = states.size() / shape[0];
  shape[0] = count;
  return {std::span<float>(states.data() + first * member, count * member), shape};
}

}  // namespace

/// Computes q, k and v of every member from x, in slabs of whole members: use(first member, members, their rows).
template <class Use>
void ForwardPass::project(const LayerWeights& weights, const Operand& x, std::size_t members, Use use) {
  const std::size_t tokens = x.rows / members, slab = std::max<std::size_t>(1, kSlabRows / tokens);
  for (std::size_t first = 0; first < members; first += slab) {
    const std::size_t count = std::min(slab, members - first);
    const BackendView<float, 2> qkv = wide.matrix(count * tokens, weights.qkv->rows());
    backend.linear(operand_rows(backend, x, first * tokens, count * tokens), *weights.qkv, qkv, false);
    use(first, count, qkv);
  }
}

/// Returns true if the states of a layer change between the projections and RoPE, or between RoPE and the attention.
bool ForwardPass::changes_states(std::size_t layer) const {
  const AttentionConfig& attention = config.layer[layer].attention;
  return config.arithmetic.qk_norm != QkNorm::kNone || config.arithmetic.value_norm || attention.kv_layer ||
         attention.is_latent() || config.is_read(layer) || attention.clip > 0 || attention.temperature.scale != 0;
}

void ForwardPass::norm_heads(const BackendView<float, 4>& states, const NormWeights& norm) {
  if (config.arithmetic.norm == NormKind::kLayer)
    backend.layer_norm_heads(states, norm.gain.view(), norm.bias.view(), config.norm_epsilon);
  else
    backend.norm_heads(states, norm.gain.view(), config.norm_epsilon);
}

/// Makes the states before RoPE of the projections. The temperature of a query is a factor that RoPE keeps, so that the
/// scores of these states are the layer's.
void ForwardPass::change_states(LayerStates& states, const LayerWeights& weights) {
  const AttentionConfig& attention = config.layer[states.layer].attention;
  if (config.arithmetic.qk_norm != QkNorm::kNone && !config.arithmetic.norms_after_rope) {
    norm_heads(states.q, weights.query_norm);
    if (states.k.size() > 0) norm_heads(states.k, weights.key_norm);
  }
  if (config.arithmetic.value_norm && states.v.size() > 0)
    backend.norm_heads(states.v, weights.value_norm.gain.view(), config.norm_epsilon);
  if (attention.clip > 0)
    for (const BackendView<float, 4>& each : {states.q, states.k, states.v}) backend.clamp(each, attention.clip);
  set_query_factors(states);
  if (!states.query_factors.empty()) backend.scale_tokens(states.q, states.query_factors);
}

void ForwardPass::set_query_factors(LayerStates& states) {
  const AttentionConfig& attention = config.layer[states.layer].attention;
  if (attention.temperature.scale == 0) return;
  query_factors.resize(states.tokens());
  for (std::size_t token = 0; token < query_factors.size(); ++token)
    query_factors[token] = attention.temperature.at(states.first_position + token);
  states.query_factors = query_factors;
}

template <class Input>
void ForwardPass::set_score_options(Input& input, std::size_t layer) const {
  const AttentionConfig& attention = config.layer[layer].attention;
  input.sinks = model.layer(layer).sinks.view();
  input.scale = attention.score_scale();
  input.window = attention.window;
  input.chunk = attention.chunk;
  input.softcap = attention.softcap;
}

/// Computes the attention of x if nothing else needs the layer's states.
void ForwardPass::attend_fused(const ResidualStream& hidden, std::size_t layer, const Operand& x,
                               const Operand& attended) {
  SelfAttentionInput input{.qkv = {},
                           .query_heads = config.layer[layer].attention.query_heads,
                           .kv_heads = config.layer[layer].attention.kv_heads,
                           .rope = model.rope(layer, hidden.positions),
                           .first_position = hidden.first_position};
  set_score_options(input, layer);
  const std::size_t tokens = hidden.tokens();
  project(model.layer(layer), x, hidden.members(),
          [&](std::size_t first, std::size_t count, const BackendView<float, 2>& qkv) {
            input.qkv = qkv;
            input.members = count;
            backend.self_attention(input, operand_rows(backend, attended, first * tokens, count * tokens));
          });
}

/// Passes on the norms that follow RoPE.
void ForwardPass::set_rotated_norms(LayerStates& states, const LayerWeights& weights) const {
  if (!config.arithmetic.norms_after_rope) return;
  const float epsilon = config.norm_epsilon;
  states.norm = {weights.query_norm.gain.view(), weights.key_norm.gain.view(), epsilon};
  states.turned_norm = {weights.turned_norm.query_gain.view(), weights.turned_norm.key_gain.view(), epsilon};
}

/// Computes the states of x before RoPE. A layer that reads another layer's keys and values has none of its own.
LayerStates ForwardPass::project_states(const ResidualStream& hidden, std::size_t layer, const Operand& x) {
  const LayerWeights& weights = model.layer(layer);
  const AttentionConfig& attention = config.layer[layer].attention;
  const std::size_t members = hidden.members(), tokens = hidden.tokens(), head_dim = attention.head_dim,
                    kv_heads = attention.kv_layer ? 0 : attention.kv_heads;
  LayerStates states{.backend = backend,
                     .layer = layer,
                     .first_position = hidden.first_position,
                     .rope = model.rope(layer, hidden.positions),
                     .x = x,
                     .q = q.states({members, attention.query_heads, tokens, head_dim}),
                     .k = k.states({members, kv_heads, tokens, head_dim}),
                     .v = v.states({members, kv_heads, tokens, head_dim})};
  if (attention.is_latent())
    latent.project(x, weights.latent, attention, states);
  else
    project(weights, x, members, [&](std::size_t first, std::size_t count, const BackendView<float, 2>& qkv) {
      backend.split_heads(qkv, member_range(states.q, first, count), member_range(states.k, first, count),
                          member_range(states.v, first, count));
    });
  change_states(states, weights);
  set_score_options(states, layer);
  set_rotated_norms(states, weights);
  return states;
}

/// Like attend_fused(), with the states in memory for the hook, the cache and the layers that read them.
void ForwardPass::attend_stored(ResidualStream& hidden, std::size_t layer, const Operand& x, const Operand& attended,
                                StateHook* hook, Cache* cache) {
  LayerStates states = project_states(hidden, layer, x);
  if (config.layer[layer].attention.kv_layer) return attend_shared(hidden, states, attended, cache);
  if (config.layer[layer].attention.latent.index.chosen > 0) choose_tokens(hidden, states, x, cache);
  if (hook != nullptr) hook->before_rope(states);
  SharedStates shared;
  if (config.is_read(layer)) shared = shared_states(states);
  if (cache == nullptr) {
    rotate_at(states, hidden.first_position);
    if (hook != nullptr) hook->after_rope(states);
    if (config.is_read(layer)) shared.k_post = copy_of(backend, BackendView<const float, 4>(states.k));
  }
  if (config.is_read(layer)) hidden.shared[layer] = std::make_shared<const SharedStates>(std::move(shared));
  if (cache != nullptr) return cache->layer(layer).attend(states, attended);
  attend_rows(states, {}, attended);
}

/// Tokens [first, first + count) of a recorded pass.
void ForwardPass::replay(const RecordedStates& recorded, std::size_t first, std::size_t count, std::size_t positions,
                         Cache& cache) {
  if (recorded.layers.size() != config.layers() || first + count > recorded.tokens())
    throw Error(ErrorCode::kInternal, "Decoder::replay", "found too few recorded layers or tokens");
  for (std::size_t layer = 0; layer < config.layers(); ++layer) {
    check_interrupt();
    const AttentionConfig& attention = config.layer[layer].attention;
    const auto part = [&](const RowBuffer& rows) { return rows.copy(backend, first, count); };
    const RecordedStates::Layer& from = recorded.layers[layer];
    const RowBuffer::Part q_part = part(from.q), k_part = part(from.k), v_part = part(from.v);
    LayerStates states{.backend = backend,
                       .layer = layer,
                       .first_position = first,
                       .rope = model.rope(layer, positions),
                       .x = {},
                       .q = q_part.view(),
                       .k = k_part.view(),
                       .v = v_part.view(),
                       .reads_output = false};
    set_query_factors(states);
    set_score_options(states, layer);
    set_rotated_norms(states, model.layer(layer));
    cache.layer(layer).attend(states, mixed.operand(count, attention.query_heads * attention.head_dim));
  }
}

/// Sets the tokens that each query reads, in a layer with an index of tokens or with another layer's choice.
void ForwardPass::choose_tokens(ResidualStream& hidden, LayerStates& states, const Operand& x, Cache* cache) {
  const LatentConfig& attention = config.layer[states.layer].attention.latent;
  if (!attention.index.shared) {
    const bool moves = hidden.members() == 1 && cache != nullptr && !cache->holds_recurrent_states();
    std::vector<float>* const past = cache == nullptr ? nullptr : &cache->index_keys(states.layer);
    hidden.chosen = std::make_shared<const std::vector<std::int32_t>>(
        latent.choose(x, model.layer(states.layer).latent, attention, states, past, moves));
  }
  if (hidden.chosen == nullptr || hidden.chosen->empty()) return;
  states.chosen = *hidden.chosen;
  if (cache == nullptr) return;
  const std::size_t tokens = hidden.first_position + hidden.tokens();
  refuse_dropped_tokens(attention.index, cache->layer(states.layer), tokens, config.name);
}

SharedStates ForwardPass::shared_states(const LayerStates& states) const {
  return {copy_of(backend, BackendView<const float, 4>(states.k)),
          copy_of(backend, BackendView<const float, 4>(states.v)),
          {}};
}

/// Attends to the keys and values of an earlier layer.
void ForwardPass::attend_shared(const ResidualStream& hidden, LayerStates& states, const Operand& attended,
                                Cache* cache) {
  const std::size_t source = *config.layer[states.layer].attention.kv_layer;
  const auto shared = hidden.shared.find(source);
  if (shared == hidden.shared.end())
    throw Error(ErrorCode::kInternal, "Decoder", "layer " + std::to_string(source) + " was not run in this stream");
  const auto fill = [&](Scratch& memory, const BackendTensor<float, 4>& from) {
    const BackendView<float, 4> to = memory.states(from.view().shape());
    backend.copy(to.data(), from.view().data(), from.bytes());
    return to;
  };
  const SharedStates& from = *shared->second;
  const bool rotated = cache == nullptr && !from.k_post.view().empty();
  states.k = fill(k, rotated ? from.k_post : from.k);
  states.v = fill(v, from.v);
  if (cache != nullptr) return cache->layer(states.layer).attend(states, attended);
  backend.rope(states.q, states.rope, hidden.first_position, RopeDirection::kForward, {});
  if (!rotated) backend.rope(states.k, states.rope, hidden.first_position, RopeDirection::kForward, {});
  attend_rows(states, {}, attended);
}

/// Adds the outputs of the blocks that mix tokens: attention and the recurrent block.
void ForwardPass::mix(ResidualStream& hidden, std::size_t layer, StateHook* hook, Cache* cache) {
  const LayerConfig& blocks = config.layer[layer];
  if (!blocks.has_recurrence() && !blocks.has_attention()) return;
  const LayerWeights& weights = model.layer(layer);
  const BackendView<float, 2> residual = as_rows(hidden);
  const Operand x = normed.operand(residual.extent(0), config.d_model);
  normalise(residual, weights.attention_norm, x);
  if (blocks.has_recurrence()) {
    RecurrentState* const state = cache == nullptr ? nullptr : &cache->recurrent(layer);
    const bool moves = hidden.members() == 1 && cache != nullptr && !cache->holds_recurrent_states();
    recurrent.add(x, hidden.members(), weights.recurrence, blocks.recurrence, config.norm_epsilon, {state, moves},
                  residual);
  }
  const bool beside = weights.laurel.down != nullptr;
  if (beside) laurel.add(x, weights.laurel, config.norm_epsilon, residual);
  if (blocks.has_attention()) attend(hidden, layer, x, hook, cache);
  if (beside) backend.scale(residual, 1 / std::numbers::sqrt2_v<float>);
}

/// @param x  the block's input; scratch afterwards
void ForwardPass::attend(ResidualStream& hidden, std::size_t layer, const Operand& x, StateHook* hook, Cache* cache) {
  const LayerWeights& weights = model.layer(layer);
  const BackendView<float, 2> residual = as_rows(hidden);
  const AttentionConfig& attention = config.layer[layer].attention;
  const Operand attended = mixed.operand(residual.extent(0), attention.query_heads * attention.head_dim);
  if (hook == nullptr && cache == nullptr && !changes_states(layer)) {
    attend_fused(hidden, layer, x, attended);
  } else {
    attend_stored(hidden, layer, x, attended, hook, cache);
  }
  if (weights.output_gate != nullptr) gate_output(x, *weights.output_gate, attended);
  // With a parallel residual, the feed-forward block reads the attention block's input, not the sum with its output.
  // Without a norm of its own it reads the same normalised input.
  if (config.arithmetic.parallel_residual && !weights.feed_forward_norm.gain.view().empty())
    normalise(residual, weights.feed_forward_norm, x);
  const Operand mixed_values = attention.is_latent() ? latent.values(attended, weights.latent, attention) : attended;
  add_to_residual(mixed_values, *weights.output, weights.attention_output_norm, residual);
}

/// attended = attended ⊙ sigmoid(x Wᵀ).
void ForwardPass::gate_output(const Operand& x, const Weight& weight, const Operand& attended) {
  for (std::size_t first = 0; first < x.rows; first += kSlabRows) {
    const std::size_t count = std::min(kSlabRows, x.rows - first);
    const BackendView<float, 2> gate = wide.matrix(count, weight.rows());
    backend.linear(operand_rows(backend, x, first, count), weight, gate, false);
    backend.gate_by_sigmoid(gate, operand_rows(backend, attended, first, count));
  }
}

}  // namespace kvs::inline model
