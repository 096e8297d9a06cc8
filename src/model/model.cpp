// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "model/layer_inputs.h"
#include "model/layer_store.h"
#include "model/make_weights.h"
#include "model/model_tensors.h"
#include "model/passes_together.h"
#include "model/token_embedding.h"
#include "model/work.h"

namespace kvs::inline model {

namespace {

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

constexpr std::size_t kFirstPositions = 1024;  // of the RoPE table

}  // namespace

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
  embedding_ = std::make_unique<TokenEmbedding>(backend, tensors.rows(TensorRole::kEmbedding));
  const Making making{.backend = backend, .tensors = tensors, .arithmetic = config_.arithmetic};
  final_norm_ = make_norm(making, TensorRole::kFinalNorm, config_.logit_scale);
  if (config_.tied_head) {
    const auto read = [this](std::size_t first, std::size_t count, std::span<float> out) {
      embedding_->read(first, count, out);
    };
    const std::vector<float> bias = tensors.bias(TensorRole::kHead, 0);
    head_ =
        backend.make_weight({.rows = embedding_->rows(), .columns = embedding_->columns(), .read = read, .bias = bias});
  } else {
    head_ = make_fused(making, std::array{TensorRole::kHead});
  }
  for (std::size_t stream = 0; stream + 1 < config_.streams.count; ++stream) {
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
  return head_->bytes() + final_norm_.bytes() + embedding_->bytes() + layers_->bytes();
}

}  // namespace kvs::inline model
