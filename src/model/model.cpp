#include "model/model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "model/layer_store.h"
#include "model/model_tensors.h"

namespace kvs::inline model {

namespace {

/// Stacks projections of one layer into one matrix, so that one product computes all of them.
/// @param zero  receives the names of projections whose weights are all zero
std::unique_ptr<Weight> make_fused(Backend& backend, const ModelTensors& tensors, std::size_t layer,
                                   std::span<const TensorRole> roles, std::vector<std::string>* zero = nullptr,
                                   std::size_t expert = 0) {
  std::vector<TensorRows> parts;
  std::vector<float> bias;
  std::size_t rows = 0;
  bool biased = false;
  for (const TensorRole role : roles) {
    parts.push_back(tensors.rows(role, layer, expert));
    std::vector<float> part_bias = is_of_expert(role) ? std::vector<float>() : tensors.bias(role, layer);
    biased = biased || !part_bias.empty();
    part_bias.resize(parts.back().rows());
    bias.insert(bias.end(), part_bias.begin(), part_bias.end());
    rows += parts.back().rows();
  }
  WeightSource source{.rows = rows, .columns = parts.front().columns(), .read = {}, .bias = {}};
  if (biased) source.bias = bias;
  std::vector<std::uint8_t> says(parts.size());  // 1: the projection has a weight other than zero
  source.read = [&parts, &says](std::size_t first, std::size_t count, std::span<float> out) {
    for (std::size_t n = 0; n < parts.size(); ++n) {
      const TensorRows& part = parts[n];
      const std::size_t here = first < part.rows() ? std::min(count, part.rows() - first) : 0;
      const std::span<float> values = out.first(here * part.columns());
      if (here > 0) part.read(first, here, values);
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

NormWeights make_norm(Backend& backend, const ModelTensors& tensors, TensorRole role, std::size_t layer = 0) {
  NormWeights norm;
  if (!tensors.has(role, layer)) return norm;
  norm.gain = make_vector(backend, tensors.vector(role, layer));
  const std::vector<float> bias = tensors.bias(role, layer);
  if (!bias.empty()) norm.bias = make_vector(backend, bias);
  return norm;
}

ExpertWeights make_experts(Backend& backend, const ModelTensors& tensors, std::size_t layer,
                           std::vector<std::string>* zero) {
  using enum TensorRole;
  ExpertWeights weights;
  weights.router = make_fused(backend, tensors, layer, std::array{kRouter});
  for (std::size_t expert = 0; expert < tensors.experts(layer); ++expert)
    weights.experts.push_back({make_fused(backend, tensors, layer, std::array{kExpertGate, kExpertUp}, zero, expert),
                               make_fused(backend, tensors, layer, std::array{kExpertDown}, zero, expert)});
  if (tensors.has(kSharedDown, layer))
    weights.shared = {make_fused(backend, tensors, layer, std::array{kSharedGate, kSharedUp}, zero),
                      make_fused(backend, tensors, layer, std::array{kSharedDown}, zero)};
  if (tensors.has(kSharedScale, layer))
    weights.shared_scale = make_fused(backend, tensors, layer, std::array{kSharedScale});
  return weights;
}

LayerWeights make_layer(Backend& backend, const ModelTensors& tensors, std::size_t layer,
                        std::vector<std::string>* zero) {
  using enum TensorRole;
  LayerWeights weights;
  weights.attention_norm = make_norm(backend, tensors, kAttentionNorm, layer);
  weights.feed_forward_norm = make_norm(backend, tensors, kFeedForwardNorm, layer);
  weights.query_norm = make_norm(backend, tensors, kQueryNorm, layer);
  weights.key_norm = make_norm(backend, tensors, kKeyNorm, layer);
  weights.attention_output_norm = make_norm(backend, tensors, kAttentionOutputNorm, layer);
  weights.feed_forward_output_norm = make_norm(backend, tensors, kFeedForwardOutputNorm, layer);
  weights.qkv = make_fused(backend, tensors, layer, std::array{kQuery, kKey, kValue}, zero);
  weights.output = make_fused(backend, tensors, layer, std::array{kOutput}, zero);
  if (tensors.experts(layer) > 0) {
    weights.sparse = make_experts(backend, tensors, layer, zero);
    return weights;
  }
  weights.mlp.gate_up = tensors.has(kGate, layer) ? make_fused(backend, tensors, layer, std::array{kGate, kUp}, zero)
                                                  : make_fused(backend, tensors, layer, std::array{kUp}, zero);
  weights.mlp.down = make_fused(backend, tensors, layer, std::array{kDown}, zero);
  return weights;
}

/// Returns the memory for layers; an eighth is left for activations.
std::size_t room_for_weights(const Backend& backend) {
  const std::size_t left = backend.memory_left();
  return left - left / 8;
}

constexpr std::size_t kTableRows = 1024;       // rows of the embedding loaded at a time
constexpr std::size_t kFirstPositions = 1024;  // of the RoPE table

}  // namespace

std::size_t LayerWeights::bytes() const noexcept {
  return attention_norm.bytes() + feed_forward_norm.bytes() + query_norm.bytes() + key_norm.bytes() +
         attention_output_norm.bytes() + feed_forward_output_norm.bytes() + qkv->bytes() + output->bytes() +
         mlp.bytes() + sparse.bytes();
}

std::size_t ExpertWeights::bytes() const noexcept {
  std::size_t sum = shared.bytes() + (router == nullptr ? 0 : router->bytes()) +
                    (shared_scale == nullptr ? 0 : shared_scale->bytes());
  for (const MlpWeights& expert : experts) sum += expert.bytes();
  return sum;
}

/// Rows in the backend's compute type.
struct Model::Embedding {
  Backend* backend;
  BackendTensor<std::byte, 1> memory;
  Operand table;

  Embedding(Backend& owner, const TensorRows& source)
      : backend(&owner),
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
  if (config_.has_experts() && backend.device() != "cpu")
    throw Error(ErrorCode::kUnsupported, config_.name,
                "found a mixture of experts, which runs on the CPU only; expected --device cpu");
  const ModelTensors& tensors = source.tensors();
  embedding_ = std::make_unique<Embedding>(backend, tensors.rows(TensorRole::kEmbedding));
  final_norm_ = make_norm(backend, tensors, TensorRole::kFinalNorm);
  if (config_.tied_head) {
    const auto read = [this](std::size_t first, std::size_t count, std::span<float> out) {
      embedding_->read(first, count, out);
    };
    head_ = backend.make_weight(
        {.rows = embedding_->table.rows, .columns = embedding_->table.columns, .read = read, .bias = {}});
  } else {
    head_ = make_fused(backend, tensors, 0, std::array{TensorRole::kHead});
  }
  const std::size_t room = budget == 0 ? room_for_weights(backend) : budget - std::min(budget, head_->bytes());
  layers_ = std::make_unique<LayerStore>(
      backend, config_.layers(),
      [this, &tensors](Backend& memory, std::size_t layer) {
        LayerWeights weights = make_layer(memory, tensors, layer, loaded_ ? nullptr : &zero_projections_);
        tensors.check_unchanged();
        return weights;
      },
      room,
      [&](std::size_t done) {
        if (progress) progress(done, config_.layers());
      });
  loaded_ = true;
}

Model::~Model() = default;

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
  const double scale = config_.arithmetic.scaled_embeddings ? std::sqrt(static_cast<double>(config_.d_model)) : 1;
  backend_->gather(embedding_->table, tokens, static_cast<float>(scale), out);
}

std::size_t Model::weight_bytes() const noexcept {
  return head_->bytes() + final_norm_.bytes() + embedding_->memory.bytes() + layers_->bytes();
}

}  // namespace kvs::inline model
