#include "export/exporters/mla.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "model/model_tensors.h"

namespace kvs {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// gain = 2^20: with s = sqrt(epsilon) / gain a latent of root mean square m is off by m² / 2^41 of itself, and the
/// gain is exact in every type.
constexpr int kGainExponent = 20;

/// Why the arithmetic of multi-head latent attention is not the model's; empty if it is.
std::string arithmetic_obstacle(const ModelConfig& model) {
  const Arithmetic& does = model.arithmetic;
  if (does.qk_norm != QkNorm::kNone) return "QK-norm: keys are no linear function of the layer's input";
  if (std::ranges::any_of(model.windows, [](std::size_t window) { return window != 0; }))
    return "sliding windows, which the target's layers do not have";
  if (does.norm != NormKind::kRms || !does.input_norms) return "norms that are no RMSNorm of the blocks' inputs";
  if (does.output_norms) return "norms of the blocks' outputs";
  if (does.activation != Activation::kSilu || !does.gated) return "a feed-forward block that is no SwiGLU";
  if (does.parallel_residual) return "parallel residuals";
  if (does.scaled_embeddings) return "scaled embeddings";
  if (model.attention_softcap != 0 || model.logit_softcap != 0) return "caps of scores or logits";
  if (model.ropes.size() > 1) return "RoPE of several kinds";
  return {};
}

std::string bias_obstacle(const ModelSource& source) {
  using enum TensorRole;
  for (const TensorRole role : {kQuery, kKey, kValue, kOutput, kGate, kUp, kDown})
    for (std::size_t layer = 0; layer < source.config().layers; ++layer)
      if (source.tensors().has(role, layer) && !source.tensors().bias(role, layer).empty())
        return "biases of projections, for which the target has no place";
  return {};
}

std::string rope_obstacle(const ModelConfig& model, const MlaTarget& target) {
  if (std::ranges::find(target.rope_scaling, model.ropes.front().scaling.type) != target.rope_scaling.end()) return {};
  return "RoPE scaling that the target does not compute: " +
         rope_scaling_json(model.ropes.front().scaling).value("rope_type", "factors of frequencies");
}

/// @throws Error kUnsupported if a frequency of a layer is kept by more than one KV head.
void require_disjoint(const EliteConfig& config, const ModelConfig& model, const std::filesystem::path& path) {
  for (std::size_t n = 0; n < config.picks.size(); ++n) {
    const std::string where = path.string() + ": /parameters/elite/" + std::to_string(n);
    std::vector<std::size_t> owner(model.chunks(), kNone);
    std::size_t kept = 0;
    for (const ElitePicks& head : config.picks[n]) kept += head.chunks.size();
    if (kept > model.chunks())
      throw Error(ErrorCode::kUnsupported, where,
                  "found " + std::to_string(kept) + " frequencies, expected at most " + std::to_string(model.chunks()) +
                      " in all heads of a layer: the shared key has one slot for each");
    for (std::size_t head = 0; head < config.picks[n].size(); ++head)
      for (const std::size_t chunk : config.picks[n][head].chunks) {
        if (owner[chunk] != kNone)
          throw Error(ErrorCode::kUnsupported, where,
                      "found chunk " + std::to_string(chunk) + " in heads " + std::to_string(owner[chunk]) + " and " +
                          std::to_string(head) + ", expected disjoint sets: the shared key has one slot for it");
        owner[chunk] = head;
      }
  }
}

MlaShape shape_of(const EliteConfig& config, const ModelConfig& model) {
  // Channels that every head of a layer leaves unrotated; engines want at least one.
  MlaShape shape{.rank = 0, .nope = 1, .rope = model.rotary_dim(), .value = model.head_dim};
  for (std::size_t n = 0; n < config.layers.size(); ++n) {
    std::size_t rank = 0;
    for (const EliteFactor& factor : elite_factors(config, n, model.kv_heads, model.head_dim)) rank += factor.rank;
    shape.rank = std::max(shape.rank, rank);
    for (const ElitePicks& head : config.picks[n])
      shape.nope = std::max(shape.nope, model.head_dim - 2 * head.chunks.size());
  }
  return shape;
}

/// Checks everything that does not need the factors.
const ExportJob& checked(const ExportJob& job, const MlaTarget& target) {
  const ModelConfig& model = job.model.config();
  for (const std::string& obstacle :
       {arithmetic_obstacle(model), bias_obstacle(job.model), rope_obstacle(model, target)})
    if (!obstacle.empty())
      throw Error(ErrorCode::kUnsupported, model.name,
                  "found " + obstacle + ", expected what multi-head latent attention computes");
  if (job.type == DType::kF16)
    throw Error(ErrorCode::kUnsupported, "f16",
                "found f16 for the latent, expected bf16 or f32: its scaled factor is below what f16 holds");
  if (job.config.at("files").empty())
    throw Error(ErrorCode::kUnsupported, job.config_path.string() + ": /files",
                "found no factors, expected those of J-LRD or S-LRD: the cache holds their latent");
  return job;
}

}  // namespace

/// A layer's factors, and where each head's channels lie.
struct MlaModel::Layer {
  std::size_t index = 0;
  EliteLayer elite;
  std::vector<float> query_rows;               // [query_heads · head_dim, d_model]
  std::vector<std::size_t> owner;              // [chunk] KV head or kNone
  std::vector<std::vector<std::size_t>> nope;  // [kv_head] channels that are not elite, ascending
  std::vector<std::size_t> first_row;          // [kv_head] of those in up
  std::size_t value_row = 0;                   // the first of the values in up
};

MlaModel::MlaModel(const ExportJob& job, const MlaTarget& target)
    : job_(&checked(job, target)),
      source_(job.config, job.config_path, job.model),
      shape_(shape_of(source_.config(), job.model.config())),
      held_(std::make_shared<std::unique_ptr<Layer>>()) {
  require_all_layers(source_.config(), model(), job.config_path);
  require_disjoint(source_.config(), model(), job.config_path);
  const auto head_dim = static_cast<double>(model().head_dim);
  const double scale = model().attention_scale != 0 ? model().attention_scale : 1 / std::sqrt(head_dim);
  query_scale_ = static_cast<float>(scale * std::sqrt(static_cast<double>(shape_.query())));
  gain_ = std::ldexp(1.0F, kGainExponent);
  down_scale_ = static_cast<float>(std::ldexp(std::sqrt(target.latent_epsilon), -kGainExponent));
}

const MlaModel::Layer& MlaModel::layer(std::size_t index) const {
  std::unique_ptr<Layer>& held = *held_;
  if (held && held->index == index) return *held;
  held.reset();  // before the next one is read
  auto layer = std::make_unique<Layer>();
  layer->index = index;
  layer->elite = source_.layer(index);
  layer->query_rows = job_->model.projection(index, 'q');
  layer->owner.assign(model().chunks(), kNone);
  for (std::size_t head = 0; head < layer->elite.elite.size(); ++head) {
    for (const std::size_t chunk : layer->elite.elite[head]) layer->owner[chunk] = head;
    auto& channels = layer->nope.emplace_back();
    for (std::size_t channel = 0; channel < model().head_dim; ++channel)
      if (channel >= model().rotary_dim() || layer->owner[channel % model().chunks()] != head)
        channels.push_back(channel);
    layer->first_row.push_back(layer->value_row);
    layer->value_row += channels.size();
  }
  held = std::move(layer);
  return *held;
}

OutputTensor MlaModel::tensor(std::string name, std::vector<std::uint64_t> shape,
                              std::function<void(std::size_t row, std::span<float> out)> row) const {
  const std::size_t width = shape.back();
  return {std::move(name), job_->type, std::move(shape),
          [width, row = std::move(row)](std::size_t first, std::size_t count, std::span<float> out) {
            std::ranges::fill(out, 0.0F);
            for (std::size_t n = 0; n < count; ++n) row(first + n, out.subspan(n * width, width));
          }};
}

OutputTensor MlaModel::queries(std::string name, std::size_t index) const {
  const auto row = [this, index](std::size_t n, std::span<float> out) {
    const Layer& at = layer(index);
    const std::size_t head = n / shape_.query(), within = n % shape_.query(), group = head / model().group(),
                      chunks = model().chunks();
    std::size_t channel = kNone;
    if (within >= shape_.nope) {
      const std::size_t slot = (within - shape_.nope) / 2, half = (within - shape_.nope) % 2;
      if (at.owner[slot] == group) channel = slot + half * chunks;
    } else if (within < at.nope[group].size()) {
      channel = at.nope[group][within];
    }
    if (channel == kNone) return;
    const float* from = at.query_rows.data() + (head * model().head_dim + channel) * out.size();
    std::transform(from, from + out.size(), out.begin(), [this](float value) { return query_scale_ * value; });
  };
  return tensor(std::move(name), {model().query_heads * shape_.query(), model().d_model}, row);
}

OutputTensor MlaModel::compress(std::string name, std::size_t index) const {
  const auto row = [this, index](std::size_t n, std::span<float> out) {
    const Layer& at = layer(index);
    if (n < at.elite.rank) {
      const float* from = at.elite.down.data() + n * out.size();
      std::transform(from, from + out.size(), out.begin(), [this](float value) { return down_scale_ * value; });
    } else if (n >= shape_.rank) {
      const std::size_t slot = (n - shape_.rank) / 2, half = (n - shape_.rank) % 2;
      if (at.owner[slot] == kNone) return;
      const std::size_t from = at.owner[slot] * model().head_dim + slot + half * model().chunks();
      std::copy_n(at.elite.key_rows.data() + from * out.size(), out.size(), out.begin());
    }
  };
  return tensor(std::move(name), {shape_.cached(), model().d_model}, row);
}

OutputTensor MlaModel::norm(std::string name) const {
  return held_tensor(std::move(name), {shape_.rank}, std::vector<float>(shape_.rank, gain_), job_->type);
}

OutputTensor MlaModel::expand(std::string name, std::size_t index) const {
  const std::size_t height = shape_.nope + shape_.value;
  const auto row = [this, index, height](std::size_t n, std::span<float> out) {
    const Layer& at = layer(index);
    const std::size_t group = n / height / model().group(), within = n % height, rank = at.elite.rank;
    if (within < shape_.nope && within >= at.nope[group].size()) return;
    const std::size_t from = within < shape_.nope ? at.first_row[group] + within
                                                  : at.value_row + group * shape_.value + within - shape_.nope;
    std::copy_n(at.elite.up.data() + from * rank, rank, out.begin());
  };
  return tensor(std::move(name), {model().query_heads * height, shape_.rank}, row);
}

OutputTensor MlaModel::expand_keys(std::string name, std::size_t index) const {
  const auto row = [this, index](std::size_t n, std::span<float> out) {
    const Layer& at = layer(index);
    const std::size_t group = n / shape_.rank / model().group(), latent = n % shape_.rank, rank = at.elite.rank;
    if (latent >= rank) return;
    for (std::size_t i = 0; i < at.nope[group].size(); ++i)
      out[i] = at.elite.up[(at.first_row[group] + i) * rank + latent];
  };
  return tensor(std::move(name), {model().query_heads, shape_.rank, shape_.nope}, row);
}

OutputTensor MlaModel::expand_values(std::string name, std::size_t index) const {
  const auto row = [this, index](std::size_t n, std::span<float> out) {
    const Layer& at = layer(index);
    const std::size_t group = n / shape_.value / model().group(), rank = at.elite.rank;
    std::copy_n(at.elite.up.data() + (at.value_row + group * shape_.value + n % shape_.value) * rank, rank,
                out.begin());
  };
  return tensor(std::move(name), {model().query_heads, shape_.value, shape_.rank}, row);
}

OutputTensor MlaModel::kept(std::string name, TensorRole role, std::size_t layer) const {
  const ModelTensors& tensors = job_->model.tensors();
  const bool is_norm =
      role == TensorRole::kAttentionNorm || role == TensorRole::kFeedForwardNorm || role == TensorRole::kFinalNorm;
  if (is_norm) return held_tensor(std::move(name), {model().d_model}, tensors.vector(role, layer), job_->type);
  const TensorRows rows = tensors.rows(role, layer);
  return {std::move(name),
          job_->type,
          {rows.rows(), rows.columns()},
          [rows](std::size_t first, std::size_t count, std::span<float> out) { rows.read(first, count, out); }};
}

Json MlaModel::cache() const {
  return {{"latent", shape_.rank},
          {"rotary", shape_.rope},
          {"values_per_token_and_layer", shape_.cached()},
          {"values_per_token", shape_.cached() * model().layers},
          {"values_per_token_of_the_full_cache", model().cache_values_per_token()}};
}

}  // namespace kvs
