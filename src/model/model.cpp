#include "model/model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "model/latent_weights.h"
#include "model/layer_inputs.h"
#include "model/layer_store.h"
#include "model/model_tensors.h"
#include "model/passes_together.h"
#include "model/work.h"

namespace kvs::inline model {

namespace {

/// How a layer's weights are made.
struct Making {
  Backend& backend;
  const ModelTensors& tensors;
  std::size_t layer = 0;
  std::vector<std::string>* zero = nullptr;  // receives the names of projections whose weights are all zero
  Arithmetic arithmetic = {};
  float residual_scale = 1;        // multiplies the weights and biases of blocks' outputs
  std::size_t value_head_dim = 0;  // of values that are normalised; 0: they are not
};

void multiply(std::span<float> values, float factor) {
  if (factor == 1) return;
  for (float& value : values) value *= factor;
}

/// Stacks projections of one layer into one matrix, so that one product computes all of them.
std::unique_ptr<Weight> make_fused(const Making& making, std::span<const TensorRole> roles, float factor = 1,
                                   std::size_t expert = 0) {
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

BackendTensor<float, 1> make_vector(Backend& backend, const std::vector<float>& values) {
  BackendTensor<float, 1> vector(backend, {values.size()});
  backend.upload(vector.view().data(), values.data(), vector.bytes());
  return vector;
}

/// @param factor  multiplies the norm's result
NormWeights make_norm(Backend& backend, const ModelTensors& tensors, NormKind kind, TensorRole role,
                      std::size_t layer = 0, float factor = 1) {
  NormWeights norm;
  if (!tensors.has(role, layer)) return norm;
  std::vector<float> gain = tensors.vector(role, layer), bias = tensors.bias(role, layer);
  multiply(gain, factor);
  multiply(bias, factor);
  norm.gain = make_vector(backend, gain);
  if (kind == NormKind::kLayer) bias.resize(gain.size());  // a family without biases
  if (!bias.empty()) norm.bias = make_vector(backend, bias);
  return norm;
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

NormWeights make_norm(const Making& making, TensorRole role, float factor = 1) {
  return make_norm(making.backend, making.tensors, making.arithmetic.norm, role, making.layer, factor);
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
  return {make_fused(making, std::array{kIndexQuery}), make_fused(making, std::array{kIndexKey}),
          make_norm(making.backend, making.tensors, NormKind::kLayer, kIndexKeyNorm, making.layer),
          make_fused(making, std::array{kIndexWeight})};
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

/// Returns the memory for layers; an eighth is left for activations.
std::size_t room_for_weights(const Backend& backend) {
  const std::size_t left = memory_left(backend);
  return left - left / 8;
}

/// Returns what no other device computes; "": every device computes the model.
std::string cpu_only_part(const ModelConfig& config) {
  const AttentionConfig& attention = config.first_attention();
  if (config.has_latents()) return "latent attention";
  if (config.has_recurrence()) return "recurrent layers";
  if (config.has_experts()) return "a mixture of experts";
  if (attention.sinks) return "attention with sinks";
  if (attention.clip > 0) return "a limit of queries, keys and values";
  if (config.has_chunks()) return "attention within chunks";
  if (attention.temperature.scale != 0) return "a temperature of queries";
  const bool layer_norm = config.arithmetic.norm == NormKind::kLayer;
  return layer_norm && config.arithmetic.qk_norm != QkNorm::kNone ? "LayerNorm of queries and keys" : "";
}

std::size_t bytes_of(const std::unique_ptr<Weight>& weight) noexcept { return weight == nullptr ? 0 : weight->bytes(); }

constexpr std::size_t kTableRows = 1024;       // rows of the embedding loaded at a time
constexpr std::size_t kFirstPositions = 1024;  // of the RoPE table

}  // namespace

std::size_t LayerWeights::bytes() const noexcept {
  return attention_norm.bytes() + feed_forward_norm.bytes() + query_norm.bytes() + key_norm.bytes() +
         turned_norm.bytes() + sinks.bytes() + attention_output_norm.bytes() + feed_forward_output_norm.bytes() +
         bytes_of(qkv) + bytes_of(output) + bytes_of(output_gate) + value_norm.bytes() + recurrence.bytes() +
         latent.bytes() + mlp.bytes() + sparse.bytes() + input.bytes() + streams.bytes() + laurel.bytes();
}

std::size_t TokenIndexWeights::bytes() const noexcept {
  return bytes_of(query) + bytes_of(key) + norm.bytes() + bytes_of(weight);
}

std::size_t LatentWeights::bytes() const noexcept {
  std::size_t sum =
      index.bytes() + bytes_of(query_latent) + query_norm.bytes() + bytes_of(query) + bytes_of(row) + norm.bytes();
  for (const auto* const maps : {&key_maps, &value_maps})
    for (const std::unique_ptr<Weight>& map : *maps) sum += map->bytes();
  return sum;
}

std::size_t RecurrenceWeights::bytes() const noexcept {
  return bytes_of(input) + bytes_of(output) + taps.bytes() + taps_bias.bytes() + decay.bytes() + step_bias.bytes() +
         skip.bytes() + norm.bytes();
}

const NormWeights& LayerWeights::any_norm() const noexcept {
  for (const NormWeights* const norm : {&attention_norm, &attention_output_norm, &feed_forward_norm})
    if (norm->bytes() > 0) return *norm;
  return feed_forward_output_norm;
}

std::size_t ExpertWeights::bytes() const noexcept {
  std::size_t sum = router_norm.bytes() + input_norm.bytes() + output_norm.bytes() + dense_output_norm.bytes() +
                    shared.bytes() + bytes_of(router) + bytes_of(shared_scale) + bytes_of(latent_in) +
                    bytes_of(latent_out);
  for (const MlpWeights& expert : experts) sum += expert.bytes();
  return sum;
}

/// Rows in the backend's compute type, in memory or in their file.
struct Model::Embedding {
  Backend* backend;
  TensorRows source;
  BackendTensor<std::byte, 1> memory;
  Operand table;

  Embedding(Backend& owner, const TensorRows& rows)
      : backend(&owner),
        source(rows),
        memory(owner, {operand_bytes(owner, source.rows(), source.columns())}),
        table{memory.view().data(), source.rows(), source.columns()} {
    std::vector<float> slab(std::min(table.rows, kTableRows) * table.columns);
    std::vector<std::uint16_t> narrow;
    for (std::size_t first = 0; first < table.rows; first += kTableRows) {
      const std::span<float> values = std::span(slab).first(std::min(kTableRows, table.rows - first) * table.columns);
      source.read(first, values.size() / table.columns, values);
      if (owner.compute_type() == DType::kF32) {
        owner.upload(at(first), values.data(), values.size_bytes());
        continue;
      }
      narrow.resize(values.size());
      std::ranges::transform(values, narrow.begin(), f32_to_bf16);
      owner.upload(at(first), narrow.data(), narrow.size() * sizeof(std::uint16_t));
    }
  }

  /// Releases the memory: rows are read from the file from now on.
  void leave_in_file() {
    memory = {};
    table.data = nullptr;
  }

  /// Writes some rows, multiplied by `scale`, to `out`.
  void gather(std::span<const std::int32_t> rows, float scale, const BackendView<float, 2>& out) const {
    if (table.data != nullptr) return backend->gather(table, rows, scale, out);
    std::vector<float> values(rows.size() * table.columns);
    for (std::size_t n = 0; n < rows.size(); ++n)
      source.read(static_cast<std::size_t>(rows[n]), 1, std::span(values).subspan(n * table.columns, table.columns));
    const bool narrow = backend->compute_type() == DType::kBF16;
    for (float& value : values) value = scale * (narrow ? bf16_to_f32(f32_to_bf16(value)) : value);
    backend->upload(out.data(), values.data(), values.size() * sizeof(float));
  }

  std::byte* at(std::size_t row) const { return memory.view().data() + operand_bytes(*backend, row, table.columns); }

  /// Copies rows [first, first + count) to host memory.
  void read(std::size_t first, std::size_t count, std::span<float> out) const {
    if (backend->compute_type() == DType::kF32) return backend->download(out.data(), at(first), out.size_bytes());
    std::vector<std::uint16_t> narrow(count * table.columns);
    backend->download(narrow.data(), at(first), narrow.size() * sizeof(std::uint16_t));
    std::ranges::transform(narrow, out.begin(), bf16_to_f32);
  }
};

Model::Model(const ModelSource& source, Backend& backend, const std::function<void(std::size_t, std::size_t)>& progress,
             std::size_t budget)
    : config_(source.config()), backend_(&backend) {
  if (const std::string part = cpu_only_part(config_); !part.empty() && backend.device() != "cpu")
    throw Error(ErrorCode::kUnsupported, config_.name,
                "found " + part + ", which runs on the CPU only; expected --device cpu");
  const ModelTensors& tensors = source.tensors();
  if ((config_.layer_inputs > 0 || tensors.has(TensorRole::kLayerScale)) && backend.device() != "cpu")
    throw Error(ErrorCode::kUnsupported, config_.name,
                "found layers with inputs or scales of their own, which run on the CPU only; expected --device cpu");
  embedding_ = std::make_unique<Embedding>(backend, tensors.rows(TensorRole::kEmbedding));
  final_norm_ = make_norm(backend, tensors, config_.arithmetic.norm, TensorRole::kFinalNorm, 0, config_.logit_scale);
  if (config_.tied_head) {
    const auto read = [this](std::size_t first, std::size_t count, std::span<float> out) {
      embedding_->read(first, count, out);
    };
    const std::vector<float> bias = tensors.bias(TensorRole::kHead, 0);
    head_ = backend.make_weight(
        {.rows = embedding_->table.rows, .columns = embedding_->table.columns, .read = read, .bias = bias});
  } else {
    head_ = make_fused({.backend = backend, .tensors = tensors}, std::array{TensorRole::kHead});
  }
  for (std::size_t stream = 0; stream + 1 < config_.streams.count; ++stream) {
    const Making making{.backend = backend, .tensors = tensors};
    streams_.in.push_back(make_fused(making, std::array{TensorRole::kStreamIn}, 1, stream));
    streams_.out.push_back(make_fused(making, std::array{TensorRole::kStreamOut}, 1, stream));
  }
  if (config_.layer_inputs > 0) layer_inputs_ = std::make_unique<LayerInputs>(tensors, config_, backend);
  const std::size_t room = budget == 0 ? room_for_weights(backend) : budget - std::min(budget, head_->bytes());
  std::vector<double> values;
  for (std::size_t layer = 0; layer < config_.layers(); ++layer) values.push_back(layer_values(config_, layer));
  layers_ = std::make_unique<LayerStore>(
      backend, values,
      [this, &tensors](Backend& memory, std::size_t layer) {
        LayerWeights weights =
            make_layer({.backend = memory,
                        .tensors = tensors,
                        .layer = layer,
                        .zero = loaded_ ? nullptr : &zero_projections_,
                        .arithmetic = config_.arithmetic,
                        .residual_scale = config_.residual_scale,
                        .value_head_dim = config_.arithmetic.value_norm ? config_.layer[layer].attention.head_dim : 0},
                       config_.layer[layer]);
        tensors.check_unchanged();
        return weights;
      },
      room,
      [&](std::size_t done) {
        if (progress) progress(done, config_.layers());
      });
  loaded_ = true;
  if (placement().streamed_layers > 0) embedding_->leave_in_file();
}

Model::~Model() = default;

std::shared_ptr<const BackendTensor<float, 3>> Model::layer_inputs(std::span<const std::int32_t> tokens,
                                                                   BackendView<const float, 2> embedded) const {
  return layer_inputs_ == nullptr ? nullptr : layer_inputs_->of(tokens, embedded);
}

const LayerWeights& Model::layer(std::size_t index) const { return layers_->at(index); }
const WeightPlacement& Model::placement() const noexcept { return layers_->placement(); }

RopeTable Model::rope(std::size_t layer, std::size_t tokens) const {
  const RopeParameters& parameters = config_.rope(layer);
  ropes_.resize(config_.ropes.size());
  Rope& rope = ropes_[config_.layer[layer].attention.rope];
  const std::size_t length_class = rope_length_class(parameters, tokens);
  const std::size_t held = length_class == rope.length_class ? rope.memory.cosine.view().extent(0) : 0;
  if (tokens > held) {
    const std::size_t grown = std::max({tokens, kFirstPositions, 2 * held});
    rope = {make_rope_memory(*backend_, rope_angles(parameters, tokens), grown), length_class};
  }
  return rope.memory.table();
}

void Model::embed(std::span<const std::int32_t> tokens, BackendView<float, 2> out) const {
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    if (tokens[t] < 0 || static_cast<std::size_t>(tokens[t]) >= config_.vocabulary) {
      throw Error(ErrorCode::kInput, "token " + std::to_string(t),
                  "found id " + std::to_string(tokens[t]) + ", expected one below the vocabulary's " +
                      std::to_string(config_.vocabulary));
    }
  }
  const double scale =
      config_.arithmetic.scaled_embeddings ? std::sqrt(static_cast<double>(config_.d_model)) : config_.embedding_scale;
  embedding_->gather(tokens, static_cast<float>(scale), out);
}

std::size_t Model::weight_bytes() const noexcept {
  return head_->bytes() + final_norm_.bytes() + embedding_->memory.bytes() + layers_->bytes();
}

}  // namespace kvs::inline model
