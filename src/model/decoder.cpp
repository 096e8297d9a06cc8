#include "model/decoder.h"

#include <algorithm>
#include <bit>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

#include "core/error.h"
#include "core/interrupt.h"
#include "model/altup.h"
#include "model/latent_attention.h"
#include "model/laurel.h"
#include "model/recurrent_block.h"
#include "model/scratch.h"
#include "model/sparse_block.h"

namespace kvs::inline model {

namespace {

/// Maximum number of rows of one product, which bounds the wide activations of a large batch. A GPU needs many rows:
/// the last round of a product's tiles leaves multiprocessors idle, and more rounds make that share smaller.
constexpr std::size_t kSlabRows = 4096;

/// Rows [first, first + count) of a matrix.
template <class T>
BackendView<T, 2> row_range(const BackendView<T, 2>& matrix, std::size_t first, std::size_t count) {
  const std::size_t columns = matrix.extent(1);
  return {std::span<T>(matrix.data() + first * columns, count * columns), {count, columns}};
}

/// Members [first, first + count) of head-major states.
BackendView<float, 4> member_range(const BackendView<float, 4>& states, std::size_t first, std::size_t count) {
  std::array<std::size_t, 4> shape = states.shape();
  const std::size_t member = states.size() / shape[0];
  shape[0] = count;
  return {std::span<float>(states.data() + first * member, count * member), shape};
}

BackendView<float, 2> as_rows(const ResidualStream& hidden) {
  const BackendView<float, 3>& rows = hidden.rows.view();
  return rows.reshape<2>({rows.extent(0) * rows.extent(1), rows.extent(2)});
}

float normal_quantile(float share) {
  return static_cast<float>(boost::math::quantile(boost::math::normal(), double{share}));
}

}  // namespace

struct Decoder::ForwardPass {
  explicit ForwardPass(const Model& weights)
      : model(weights),
        backend(weights.backend()),
        config(weights.config()),
        normed(backend),
        wide(backend),
        q(backend),
        k(backend),
        v(backend),
        mixed(backend),
        summed(backend),
        last(backend),
        routed(backend),
        sparse(backend),
        recurrent(backend),
        latent(backend),
        altup(weights),
        laurel(backend) {}

  void advance(ResidualStream& hidden, std::size_t last_layer, StateHook* hook, Cache* cache);
  void run_layer(ResidualStream& hidden, std::size_t layer, StateHook* hook, Cache* cache);
  void mix(ResidualStream& hidden, std::size_t layer, StateHook* hook, Cache* cache);
  void attend(ResidualStream& hidden, std::size_t layer, const Operand& x, StateHook* hook, Cache* cache);
  void attend_fused(const ResidualStream& hidden, std::size_t layer, const Operand& x, const Operand& attended);
  LayerStates project_states(const ResidualStream& hidden, std::size_t layer, const Operand& x);
  void attend_stored(ResidualStream& hidden, std::size_t layer, const Operand& x, const Operand& attended,
                     StateHook* hook, Cache* cache);
  void choose_tokens(ResidualStream& hidden, LayerStates& states, const Operand& x, Cache* cache);
  void attend_shared(const ResidualStream& hidden, LayerStates& states, const Operand& attended, Cache* cache);
  SharedStates shared_states(const LayerStates& states) const;
  template <class Use>
  void project(const LayerWeights& weights, const Operand& x, std::size_t members, Use use);
  void gate_output(const Operand& x, const Weight& weight, const Operand& attended);
  void feed_forward(const ResidualStream& hidden, std::size_t layer);
  void feed_forward_beside(const BackendView<float, 2>& slab, std::size_t layer);
  void add_layer_input(const ResidualStream& hidden, std::size_t layer);
  void normalise(BackendView<const float, 2> rows, const NormWeights& norm, const Operand& out);
  void add_to_residual(const Operand& x, const Weight& weight, const NormWeights& norm,
                       const BackendView<float, 2>& residual);
  bool changes_states(std::size_t layer) const;
  void norm_heads(const BackendView<float, 4>& states, const NormWeights& norm);
  void change_states(LayerStates& states, const LayerWeights& weights);
  void set_rotated_norms(LayerStates& states, const LayerWeights& weights) const;
  template <class Input>
  void set_score_options(Input& input, std::size_t layer) const;
  void keep_last_rows(const ResidualStream& hidden, const BackendView<float, 2>& kept);
  void check_finite(const BackendView<float, 2>& kept, std::size_t members, std::size_t first_layer);

  const Model& model;
  Backend& backend;
  const ModelConfig& config;
  Scratch normed;   // operand [rows, d_model]: the input of qkv, gate_up or the head
  Scratch wide;     // f32 [slab, (H + 2G)·d], or [slab, d_model] before an output norm
  Scratch q, k, v;  // f32, head-major, if a hook, a cache or a norm needs them
  Scratch mixed;    // operand [rows, H·d] or [slab, d_ff]
  Scratch summed;   // f32 [slab, 2 · d_model]: the sum of a dense block and experts, and the experts' part
  Scratch last;     // f32 [layer of the call · member, d_model]: the last token after each layer
  Scratch routed;   // operand [slab, d_model]: the router's input beside a dense block
  std::vector<float> query_factors;  // [token] of the current layer
  SparseBlock sparse;
  RecurrentBlock recurrent;
  LatentAttention latent;
  AltUp altup;
  Laurel laurel;
};

/// Computes the input of a block or the head from the residual stream; without a norm, the rows themselves.
void Decoder::ForwardPass::normalise(BackendView<const float, 2> rows, const NormWeights& norm, const Operand& out) {
  if (norm.gain.view().empty()) {
    backend.narrow(rows, out);
  } else if (config.arithmetic.norm == NormKind::kLayer) {
    backend.layer_norm(rows, norm.gain.view(), norm.bias.view(), config.norm_epsilon, out);
  } else {
    backend.rms_norm(rows, norm.gain.view(), config.norm_epsilon, out);
  }
}

/// residual += x Wᵀ, or += norm(x Wᵀ) if the architecture normalises a block's output.
void Decoder::ForwardPass::add_to_residual(const Operand& x, const Weight& weight, const NormWeights& norm,
                                           const BackendView<float, 2>& residual) {
  if (norm.gain.view().empty()) return backend.linear(x, weight, residual, true);
  for (std::size_t first = 0; first < x.rows; first += kSlabRows) {
    const std::size_t count = std::min(kSlabRows, x.rows - first);
    const BackendView<float, 2> yielded = wide.matrix(count, weight.rows());
    backend.linear(operand_rows(backend, x, first, count), weight, yielded, false);
    backend.rms_norm_add(yielded, norm.gain.view(), config.norm_epsilon, row_range(residual, first, count));
  }
}

/// Computes q, k and v of every member from x, in slabs of whole members: use(first member, members, their rows).
template <class Use>
void Decoder::ForwardPass::project(const LayerWeights& weights, const Operand& x, std::size_t members, Use use) {
  const std::size_t tokens = x.rows / members, slab = std::max<std::size_t>(1, kSlabRows / tokens);
  for (std::size_t first = 0; first < members; first += slab) {
    const std::size_t count = std::min(slab, members - first);
    const BackendView<float, 2> qkv = wide.matrix(count * tokens, weights.qkv->rows());
    backend.linear(operand_rows(backend, x, first * tokens, count * tokens), *weights.qkv, qkv, false);
    use(first, count, qkv);
  }
}

/// Returns true if the states of a layer change between the projections and RoPE, or between RoPE and the attention.
bool Decoder::ForwardPass::changes_states(std::size_t layer) const {
  const AttentionConfig& attention = config.layer[layer].attention;
  return config.arithmetic.qk_norm != QkNorm::kNone || config.arithmetic.value_norm || attention.kv_layer ||
         attention.is_latent() || config.is_read(layer) || attention.clip > 0 || attention.temperature.scale != 0;
}

void Decoder::ForwardPass::norm_heads(const BackendView<float, 4>& states, const NormWeights& norm) {
  if (config.arithmetic.norm == NormKind::kLayer)
    backend.layer_norm_heads(states, norm.gain.view(), norm.bias.view(), config.norm_epsilon);
  else
    backend.norm_heads(states, norm.gain.view(), config.norm_epsilon);
}

/// Makes the states before RoPE of the projections. The temperature of a query is a factor that RoPE keeps, so that the
/// scores of these states are the layer's.
void Decoder::ForwardPass::change_states(LayerStates& states, const LayerWeights& weights) {
  const AttentionConfig& attention = config.layer[states.layer].attention;
  if (config.arithmetic.qk_norm != QkNorm::kNone && !config.arithmetic.norms_after_rope) {
    norm_heads(states.q, weights.query_norm);
    if (states.k.size() > 0) norm_heads(states.k, weights.key_norm);
  }
  if (config.arithmetic.value_norm && states.v.size() > 0)
    backend.norm_heads(states.v, weights.value_norm.gain.view(), config.norm_epsilon);
  if (attention.clip > 0)
    for (const BackendView<float, 4>& each : {states.q, states.k, states.v}) backend.clamp(each, attention.clip);
  if (attention.temperature.scale == 0) return;
  query_factors.resize(states.tokens());
  for (std::size_t token = 0; token < query_factors.size(); ++token)
    query_factors[token] = attention.temperature.at(states.first_position + token);
  backend.scale_tokens(states.q, query_factors);
  states.query_factors = query_factors;
}

template <class Input>
void Decoder::ForwardPass::set_score_options(Input& input, std::size_t layer) const {
  const AttentionConfig& attention = config.layer[layer].attention;
  input.sinks = model.layer(layer).sinks.view();
  input.scale = attention.score_scale();
  input.window = attention.window;
  input.chunk = attention.chunk;
  input.softcap = attention.softcap;
}

/// Computes the attention of x if nothing else needs the layer's states.
void Decoder::ForwardPass::attend_fused(const ResidualStream& hidden, std::size_t layer, const Operand& x,
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
void Decoder::ForwardPass::set_rotated_norms(LayerStates& states, const LayerWeights& weights) const {
  if (!config.arithmetic.norms_after_rope) return;
  const float epsilon = config.norm_epsilon;
  states.norm = {weights.query_norm.gain.view(), weights.key_norm.gain.view(), epsilon};
  states.turned_norm = {weights.turned_norm.query_gain.view(), weights.turned_norm.key_gain.view(), epsilon};
}

/// Computes the states of x before RoPE. A layer that reads another layer's keys and values has none of its own.
LayerStates Decoder::ForwardPass::project_states(const ResidualStream& hidden, std::size_t layer, const Operand& x) {
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
void Decoder::ForwardPass::attend_stored(ResidualStream& hidden, std::size_t layer, const Operand& x,
                                         const Operand& attended, StateHook* hook, Cache* cache) {
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

/// Sets the tokens that each query reads, in a layer with an index of tokens or with another layer's choice.
void Decoder::ForwardPass::choose_tokens(ResidualStream& hidden, LayerStates& states, const Operand& x, Cache* cache) {
  const LatentConfig& attention = config.layer[states.layer].attention.latent;
  if (!attention.index.shared) {
    const bool moves = hidden.members() == 1 && cache != nullptr && !cache->holds_recurrent_states();
    std::vector<float>* const past = cache == nullptr ? nullptr : &cache->index_keys(states.layer);
    hidden.chosen = std::make_shared<const std::vector<std::int32_t>>(
        latent.choose(x, model.layer(states.layer).latent, attention, states, past, moves));
  }
  if (hidden.chosen == nullptr || hidden.chosen->empty()) return;
  states.chosen = *hidden.chosen;
  if (cache == nullptr || cache->layer(states.layer).holds_every_token()) return;
  throw Error(ErrorCode::kUnsupported, config.name,
              "found a cache that drops or codes tokens, and a text of more than " +
                  std::to_string(attention.index.chosen) +
                  " tokens (index_topk), of which the model's index chooses those that are read; supported is: full");
}

SharedStates Decoder::ForwardPass::shared_states(const LayerStates& states) const {
  return {copy_of(backend, BackendView<const float, 4>(states.k)),
          copy_of(backend, BackendView<const float, 4>(states.v)),
          {}};
}

/// Attends to the keys and values of an earlier layer.
void Decoder::ForwardPass::attend_shared(const ResidualStream& hidden, LayerStates& states, const Operand& attended,
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
void Decoder::ForwardPass::mix(ResidualStream& hidden, std::size_t layer, StateHook* hook, Cache* cache) {
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
void Decoder::ForwardPass::attend(ResidualStream& hidden, std::size_t layer, const Operand& x, StateHook* hook,
                                  Cache* cache) {
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
void Decoder::ForwardPass::gate_output(const Operand& x, const Weight& weight, const Operand& attended) {
  for (std::size_t first = 0; first < x.rows; first += kSlabRows) {
    const std::size_t count = std::min(kSlabRows, x.rows - first);
    const BackendView<float, 2> gate = wide.matrix(count, weight.rows());
    backend.linear(operand_rows(backend, x, first, count), weight, gate, false);
    backend.gate_by_sigmoid(gate, operand_rows(backend, attended, first, count));
  }
}

void Decoder::ForwardPass::feed_forward(const ResidualStream& hidden, std::size_t layer) {
  if (!config.layer[layer].has_feed_forward()) return;
  const LayerWeights& weights = model.layer(layer);
  const BackendView<float, 2> residual = as_rows(hidden);
  const std::size_t rows = residual.extent(0);
  const Arithmetic& arithmetic = config.arithmetic;
  for (std::size_t first = 0; first < rows; first += kSlabRows) {
    const std::size_t count = std::min(kSlabRows, rows - first);
    const BackendView<float, 2> slab = row_range(residual, first, count);
    const FeedForwardConfig& block = config.layer[layer].feed_forward;
    if (block.experts.beside_dense) {
      feed_forward_beside(slab, layer);
      continue;
    }
    Operand x;
    if (arithmetic.parallel_residual) {
      x = operand_rows(backend, normed.operand(rows, config.d_model), first, count);  // attend() has left it there
    } else {
      x = normed.operand(count, config.d_model);
      normalise(slab, weights.feed_forward_norm, x);
    }
    if (block.is_sparse()) {
      sparse.add(x, x, weights.sparse, block.experts, arithmetic.activation, slab);
      continue;
    }
    const Operand activated = mixed.operand(count, block.d_ff);
    if (block.sparsity > 0)
      backend.sparse_up_projection(x, *weights.mlp.gate_up, arithmetic.activation, normal_quantile(block.sparsity),
                                   activated);
    else
      backend.up_projection(x, *weights.mlp.gate_up, arithmetic.activation, activated);
    add_to_residual(activated, *weights.mlp.down, weights.feed_forward_output_norm, slab);
  }
}

/// residual += norm(norm(dense block) + norm(experts)), each block with a norm of its input; the router has its own.
void Decoder::ForwardPass::feed_forward_beside(const BackendView<float, 2>& slab, std::size_t layer) {
  const LayerWeights& weights = model.layer(layer);
  const FeedForwardConfig& block = config.layer[layer].feed_forward;
  const std::size_t count = slab.extent(0), width = config.d_model;
  const BackendView<float, 2> both = summed.matrix(2 * count, width), sum = row_range(both, 0, count),
                              experts = row_range(both, count, count);
  backend.clear(both);
  const Operand x = normed.operand(count, width), router_input = routed.operand(count, width);
  normalise(slab, weights.feed_forward_norm, x);
  const Operand activated = mixed.operand(count, block.d_ff);
  backend.up_projection(x, *weights.mlp.gate_up, config.arithmetic.activation, activated);
  add_to_residual(activated, *weights.mlp.down, weights.sparse.dense_output_norm, sum);
  normalise(slab, weights.sparse.input_norm, x);
  normalise(slab, weights.sparse.router_norm, router_input);
  sparse.add(x, router_input, weights.sparse, block.experts, config.arithmetic.activation, experts);
  backend.rms_norm_add(experts, weights.sparse.output_norm.gain.view(), config.norm_epsilon, sum);
  backend.rms_norm_add(sum, weights.feed_forward_output_norm.gain.view(), config.norm_epsilon, slab);
}

/// residual += norm(W (activation(gate residual) ⊙ the layer's own input)). With streams side by side, all but the
/// first grow by it.
void Decoder::ForwardPass::add_layer_input(const ResidualStream& hidden, std::size_t layer) {
  const LayerInputWeights& weights = model.layer(layer).input;
  const BackendView<float, 2> residual = as_rows(hidden);
  const std::size_t tokens = hidden.tokens(), slab = std::max<std::size_t>(1, kSlabRows / tokens) * tokens;
  for (std::size_t first = 0; first < residual.extent(0); first += slab) {  // whole members
    const BackendView<float, 2> rows = row_range(residual, first, std::min(slab, residual.extent(0) - first));
    const Operand x = normed.operand(rows.extent(0), config.d_model),
                  activated = mixed.operand(rows.extent(0), config.layer_inputs);
    backend.narrow(rows, x);
    backend.up_projection(x, *weights.gate, config.arithmetic.activation, activated);
    backend.multiply(hidden.layer_inputs->view().slice(layer), activated);
    if (hidden.others.empty()) add_to_residual(activated, *weights.output, weights.norm, rows);
    for (const BackendTensor<float, 3>& other : hidden.others) {
      const BackendView<float, 2> stream = other.view().reshape<2>(residual.shape());
      add_to_residual(activated, *weights.output, weights.norm, row_range(stream, first, rows.extent(0)));
    }
  }
}

/// Copies the last token of each member to `kept`. In a layer without a window, attention carries a non-finite value of
/// any token to the last token.
void Decoder::ForwardPass::keep_last_rows(const ResidualStream& hidden, const BackendView<float, 2>& kept) {
  const BackendView<float, 2> residual = as_rows(hidden);
  for (std::size_t member = 0; member < hidden.members(); ++member) {
    const BackendView<float, 2> row = row_range(residual, (member + 1) * hidden.tokens() - 1, 1);
    backend.copy(row_range(kept, member, 1).data(), row.data(), row.size() * sizeof(float));
  }
}

/// @param kept  rows of keep_last_rows() for the layers from first_layer on, `members` rows each
void Decoder::ForwardPass::check_finite(const BackendView<float, 2>& kept, std::size_t members,
                                        std::size_t first_layer) {
  const std::vector<float> values = download(backend, kept);
  const auto bad = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
  if (bad == values.end()) return;
  const std::size_t row = static_cast<std::size_t>(bad - values.begin()) / config.d_model;
  throw Error(ErrorCode::kData, config.name + ": layer " + std::to_string(first_layer + row / members),
              "found NaN or infinity in the residual stream after this layer, expected finite activations");
}

void Decoder::ForwardPass::run_layer(ResidualStream& hidden, std::size_t layer, StateHook* hook, Cache* cache) {
  const bool streams = !hidden.others.empty();
  if (streams) altup.predict(hidden, model.layer(layer).streams);
  mix(hidden, layer, hook, cache);
  feed_forward(hidden, layer);
  if (streams) altup.correct(hidden, model.layer(layer).streams);
  if (hidden.layer_inputs != nullptr) add_layer_input(hidden, layer);
  if (const float scale = model.layer(layer).scale; scale != 1) backend.scale(as_rows(hidden), scale);
}

/// Results are checked once, at the end: a download after every layer would leave a GPU idle.
void Decoder::ForwardPass::advance(ResidualStream& hidden, std::size_t last_layer, StateHook* hook, Cache* cache) {
  const std::size_t first = hidden.next_layer, members = hidden.members();
  if (first >= last_layer) return;
  // Between two streamed layers, other passes may go on (turns/turns.h).
  BackendTensor<float, 2> own;
  if (model.placement().streamed_layers > 0)
    own = BackendTensor<float, 2>(backend, {(last_layer - first) * members, config.d_model});
  const BackendView<float, 2> kept =
      own.bytes() > 0 ? own.view() : last.matrix((last_layer - first) * members, config.d_model);
  const auto check = [&] { check_finite(row_range(kept, 0, (hidden.next_layer - first) * members), members, first); };
  try {
    for (; hidden.next_layer < last_layer; ++hidden.next_layer) {
      check_interrupt();
      run_layer(hidden, hidden.next_layer, hook, cache);
      keep_last_rows(hidden, row_range(kept, (hidden.next_layer - first) * members, members));
    }
  } catch (const Error& error) {
    // A hook may be the first to refuse states that result from an earlier layer's overflow; that layer is the cause.
    if (error.code() != ErrorCode::kEnvironment) check();
    throw;
  }
  check();
  if (!hidden.others.empty() && last_layer == config.layers()) altup.end(hidden);
}

Decoder::Decoder(const Model& model) : model_(&model), pass_(std::make_unique<ForwardPass>(model)) {}
Decoder::~Decoder() = default;

ResidualStream Decoder::embed(std::span<const std::int32_t> tokens, std::size_t first_position, std::size_t positions) {
  if (tokens.empty()) throw Error(ErrorCode::kInternal, "Decoder::embed", "no tokens");
  const std::size_t width = model_->config().d_model;
  ResidualStream hidden{.rows = BackendTensor<float, 3>(model_->backend(), {1, tokens.size(), width}),
                        .first_position = first_position,
                        .positions = positions == 0 ? first_position + tokens.size() : positions};
  model_->embed(tokens, hidden.rows.view().slice(0));
  hidden.layer_inputs = model_->layer_inputs(tokens, hidden.rows.view().slice(0));
  if (model_->config().streams.count > 1) pass_->altup.begin(hidden);
  return hidden;
}

namespace {

template <std::size_t Rank>
BackendTensor<float, Rank> repeated(Backend& backend, const BackendTensor<float, Rank>& states, std::size_t members) {
  if (states.view().empty()) return {};
  std::array<std::size_t, Rank> shape = states.view().shape();
  shape[0] = members;
  BackendTensor<float, Rank> all(backend, shape);
  for (std::size_t member = 0; member < members; ++member)
    backend.copy(all.view().slice(member).data(), states.view().data(), states.bytes());
  return all;
}

std::shared_ptr<const SharedStates> repeated(Backend& backend, const SharedStates& states, std::size_t members) {
  return std::make_shared<const SharedStates>(SharedStates{repeated(backend, states.k, members),
                                                           repeated(backend, states.v, members),
                                                           repeated(backend, states.k_post, members)});
}

}  // namespace

ResidualStream Decoder::repeat(const ResidualStream& hidden, std::size_t members) {
  if (hidden.members() != 1 || members == 0) {
    throw Error(ErrorCode::kInternal, "Decoder::repeat", "expected one member and a count above 0");
  }
  Backend& backend = model_->backend();
  ResidualStream batch{.rows = BackendTensor<float, 3>(backend, {members, hidden.tokens(), model_->config().d_model}),
                       .first_position = hidden.first_position,
                       .next_layer = hidden.next_layer,
                       .positions = hidden.positions};
  for (std::size_t member = 0; member < members; ++member) {
    backend.copy(batch.rows.view().slice(member).data(), hidden.rows.view().data(), hidden.rows.bytes());
  }
  batch.layer_inputs = hidden.layer_inputs;
  if (hidden.chosen != nullptr) {
    std::vector<std::int32_t> chosen;
    for (std::size_t member = 0; member < members; ++member)
      chosen.insert(chosen.end(), hidden.chosen->begin(), hidden.chosen->end());
    batch.chosen = std::make_shared<const std::vector<std::int32_t>>(std::move(chosen));
  }
  for (const BackendTensor<float, 3>& other : hidden.others) batch.others.push_back(repeated(backend, other, members));
  for (const auto& [layer, states] : hidden.shared)
    batch.shared[layer] = members == 1 ? states : repeated(backend, *states, members);
  return batch;
}

void Decoder::advance(ResidualStream& hidden, std::size_t last_layer, StateHook* hook, Cache* cache) {
  if (last_layer > model_->config().layers()) {
    throw Error(ErrorCode::kInternal, "Decoder::advance", "layer " + std::to_string(last_layer) + " of too few");
  }
  pass_->advance(hidden, last_layer, hook, cache);
}

namespace {

/// Finite outputs of the last layer may overflow in the head.
[[noreturn]] void refuse_head(const std::string& model) {
  throw Error(ErrorCode::kData, model + ": output layer", "found NaN or infinity in its logits, expected finite ones");
}

void check_head(std::span<const float> values, const std::string& model) {
  constexpr std::uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
  std::uint32_t largest = 0;  // infinity and NaN have the largest bits
  for (const float value : values) largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & kMagnitude);
  if (largest >= kInfinity) refuse_head(model);
}

}  // namespace

std::vector<float> Decoder::nll(const ResidualStream& hidden, std::span<const std::int32_t> targets) {
  if (hidden.next_layer != model_->config().layers() || targets.size() != hidden.tokens()) {
    throw Error(ErrorCode::kInternal, "Decoder::nll", "expected a finished pass and one target per token");
  }
  std::vector<std::size_t> scored;  // rows with a target
  std::vector<std::int32_t> scored_targets;
  for (std::size_t row = 0; row < hidden.members() * hidden.tokens(); ++row) {
    const std::int32_t target = targets[row % hidden.tokens()];
    if (target < 0) continue;
    scored.push_back(row);
    scored_targets.push_back(target);
  }
  std::vector<float> result(hidden.members() * hidden.tokens());
  if (scored.empty()) return result;
  const Operand x = final_rows(hidden, scored);
  std::vector<float> losses(scored.size());
  try {
    model_->backend().cross_entropy(x, model_->head(), scored_targets, losses, model_->config().logit_softcap);
  } catch (const Error& error) {  // thrown for a row that is not finite
    if (error.code() != ErrorCode::kData) throw;
    refuse_head(model_->config().name);
  }
  for (std::size_t i = 0; i < scored.size(); ++i) result[scored[i]] = losses[i];
  return result;
}

/// Returns some rows after the final norm, packed. Adjacent rows are normalised together.
Operand Decoder::final_rows(const ResidualStream& hidden, std::span<const std::size_t> rows) {
  const BackendView<float, 2> residual = as_rows(hidden);
  const Operand x = pass_->normed.operand(rows.size(), model_->config().d_model);
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t end = first + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    if (rows[first] + (end - first) > residual.extent(0)) {
      throw Error(ErrorCode::kInternal, "Decoder", "row outside the pass");
    }
    pass_->normalise(row_range(residual, rows[first], end - first), model_->final_norm(),
                     operand_rows(pass_->backend, x, first, end - first));
    first = end;
  }
  return x;
}

std::vector<float> Decoder::logits(const ResidualStream& hidden, std::span<const std::size_t> rows) {
  if (hidden.next_layer != model_->config().layers() || rows.empty()) {
    throw Error(ErrorCode::kInternal, "Decoder::logits", "expected a finished pass and rows of it");
  }
  const Operand x = final_rows(hidden, rows);
  const BackendView<float, 2> out = pass_->wide.matrix(rows.size(), model_->config().vocabulary);
  model_->backend().linear(x, model_->head(), out, false);
  std::vector<float> logits = download(model_->backend(), out);
  check_head(logits, model_->config().name);
  const float cap = model_->config().logit_softcap;
  if (cap > 0) {
    for (float& logit : logits) logit = cap * std::tanh(logit / cap);
  }
  return logits;
}

std::vector<float> document_nll(Decoder& decoder, std::span<const std::int32_t> tokens, StateHook* hook) {
  ResidualStream hidden = decoder.embed(tokens);
  decoder.advance(hidden, decoder.model().config().layers(), hook);
  std::vector<std::int32_t> targets(tokens.begin() + 1, tokens.end());
  targets.push_back(-1);
  std::vector<float> nll = decoder.nll(hidden, targets);
  nll.pop_back();
  return nll;
}

}  // namespace kvs::inline model
