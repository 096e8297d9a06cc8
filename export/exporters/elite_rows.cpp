// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/elite_rows.h"

#include <algorithm>

#include "core/error.h"
#include "model/model_tensors.h"

namespace kvs::inline exporting {
namespace {

constexpr std::string_view kExpected = ", expected the arithmetic of Llama";

/// Returns the part of the model's arithmetic that differs from Llama's; empty if none does.
std::string arithmetic_obstacle(const ModelConfig& model) {
  const Arithmetic& does = model.arithmetic;
  if (does.qk_norm != QkNorm::kNone) return "QK-norm: keys are no linear function of the layer's input";
  if (model.has_windows()) return "sliding windows, which the target's layers do not have";
  if (does.norm != NormKind::kRms || !does.input_norms) return "norms that are no RMSNorm of the blocks' inputs";
  if (does.output_norms) return "norms of the blocks' outputs";
  if (does.activation != Activation::kSilu || !does.gated) return "a feed-forward block that is no SwiGLU";
  if (model.has_experts()) return "experts, for which the target has no place";
  if (model.has_recurrence()) return "recurrent layers, which the target does not have";
  if (does.parallel_residual) return "parallel residuals";
  if (does.scaled_embeddings) return "scaled embeddings";
  const AttentionConfig& attention = model.layer.front().attention;
  if (attention.sinks) return "attention sinks";
  if (attention.temperature.scale != 0) return "a temperature of queries";
  if (attention.softcap != 0 || model.logit_softcap != 0) return "caps of scores or logits";
  if (model.embedding_scale != 1 || model.residual_scale != 1 || model.logit_scale != 1) return "multipliers";
  if (model.ropes.size() > 1) return "RoPE of several kinds";
  return {};
}

std::string bias_obstacle(const ModelSource& source) {
  using enum TensorRole;
  for (const TensorRole role : {kQuery, kKey, kValue, kOutput, kGate, kUp, kDown})
    for (std::size_t layer = 0; layer < source.config().layers(); ++layer)
      if (!source.tensors().bias(role, layer).empty())
        return "found biases of projections, for which the target has no place" + std::string(kExpected);
  return {};
}

/// Checks the job as far as possible without the factors.
const ExportJob& checked(const ExportJob& job) {
  const ModelConfig& model = job.model.config();
  std::string obstacle = elite_model_obstacle(model);
  if (obstacle.empty()) obstacle = bias_obstacle(job.model);
  if (!obstacle.empty()) throw Error(ErrorCode::kUnsupported, model.name, obstacle);
  if (job.config.at("files").empty())
    throw Error(ErrorCode::kUnsupported, job.config_path.string() + ": /files",
                "found no factors, expected those of J-LRD or S-LRD: the cache holds their latent");
  return job;
}

}  // namespace

std::string elite_model_obstacle(const ModelConfig& model) {
  const std::string obstacle = arithmetic_obstacle(model);
  return obstacle.empty() ? obstacle : "found " + obstacle + std::string(kExpected);
}

EliteModel::EliteModel(const ExportJob& job) : job_(&checked(job)), source_(job.config, job.config_path, job.model) {
  require_all_layers(config(), model(), job.config_path);
  for (std::size_t n = 0; n < config().layers.size(); ++n) {
    std::size_t rank = 0;
    for (const EliteFactor& factor : elite_factors(config(), n, model().kv_heads(), model().head_dim()))
      rank += factor.rank;
    rank_ = std::max(rank_, rank);
  }
}

const EliteRows& EliteModel::layer(std::size_t index) const {
  if (held_ && held_->index == index) return *held_;
  held_.reset();  // free memory before reading the next layer
  auto rows = std::make_unique<EliteRows>();
  rows->index = index;
  rows->elite = source_.layer(index);
  rows->query_rows =
      rows->elite.query_rows.empty() ? job_->model.projection(index, 'q') : std::move(rows->elite.query_rows);
  for (const auto& chunks : rows->elite.elite) {
    auto& channels = rows->plain.emplace_back();
    for (std::size_t channel = 0; channel < model().head_dim(); ++channel)
      if (channel >= model().rotary_dim() || std::ranges::find(chunks, channel % model().chunks()) == chunks.end())
        channels.push_back(channel);
    rows->first_row.push_back(rows->value_row);
    rows->value_row += channels.size();
  }
  held_ = std::move(rows);
  return *held_;
}

OutputTensor EliteModel::rows(std::string name, std::vector<std::uint64_t> shape,
                              std::function<void(std::size_t row, std::span<float> out)> row) const {
  const std::size_t width = shape.back();
  return {std::move(name), job_->type, std::move(shape),
          [width, row = std::move(row)](std::size_t first, std::size_t count, std::span<float> out) {
            std::ranges::fill(out, 0.0F);
            for (std::size_t n = 0; n < count; ++n) row(first + n, out.subspan(n * width, width));
          }};
}

OutputTensor EliteModel::kept(std::string name, TensorRole role, std::size_t layer) const {
  using enum TensorRole;
  const ModelTensors& tensors = job_->model.tensors();
  if (role == kAttentionNorm || role == kFeedForwardNorm || role == kFinalNorm)
    return held_tensor(std::move(name), {model().d_model}, tensors.vector(role, layer), job_->type);
  const TensorRows rows = tensors.rows(role, layer);
  return {std::move(name),
          job_->type,
          {rows.rows(), rows.columns()},
          [rows](std::size_t first, std::size_t count, std::span<float> out) { rows.read(first, count, out); }};
}

OutputTensor EliteModel::output(std::string name, std::size_t index) const {
  if (!config().fitted_outputs) return kept(std::move(name), TensorRole::kOutput, index);
  const TensorRows own = job_->model.tensors().rows(TensorRole::kOutput, index);
  return rows(std::move(name), {own.rows(), own.columns()}, [this, own, index](std::size_t row, std::span<float> out) {
    const std::vector<float>& fitted = layer(index).elite.output;
    std::vector<float> weights(own.columns());
    own.read(row, 1, weights);
    std::vector<double> sums(out.size());
    for (std::size_t n = 0; n < weights.size(); ++n)
      for (std::size_t column = 0; column < out.size(); ++column)
        sums[column] += static_cast<double>(weights[n]) * fitted[n * out.size() + column];
    std::ranges::copy(sums, out.begin());
  });
}

Json cache_json(const ModelConfig& model, std::size_t latent, std::size_t rotary) {
  return {{"latent", latent},
          {"rotary", rotary},
          {"values_per_token_and_layer", latent + rotary},
          {"values_per_token", (latent + rotary) * model.layers()},
          {"values_per_token_of_the_full_cache", model.cache_values_per_token()}};
}

}  // namespace kvs::inline exporting
