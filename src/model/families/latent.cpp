// SPDX-License-Identifier: Apache-2.0
#include "model/families/latent.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "model/gguf_keys.h"
#include "model/hf_options.h"
#include "model/parsed_config.h"
#include "model/rope_config.h"

namespace kvs::inline model {
namespace {

/// Reads q_lora_rank, which is null where queries come from the layer's input.
std::size_t query_rank(const JsonCursor& root, std::size_t missing) {
  constexpr std::string_view kKey = "q_lora_rank";
  if (root.value().contains(kKey) && root.at(kKey).is_null()) return 0;
  return hf_count(root, kKey, kMaxWidth, missing);
}

/// Returns YaRN's factor of scores, (weight · ln(factor) + 1)²; nothing if it is not a number above 0.
/// Source: yarn_apply_mscale() in Transformers.
std::optional<double> squared_temperature(double factor, double weight) {
  const double temperature = factor <= 1 ? 1 : weight * std::log(factor) + 1;
  const double squared = temperature * temperature;
  return squared > 0 && std::isfinite(squared) ? std::optional(squared) : std::nullopt;
}

/// Returns the factor of scores with which YaRN's models are trained.
double score_temperature(const JsonCursor& root) {
  const JsonCursor rope = scaling_object(root);
  constexpr std::string_view kWeight = "mscale_all_dim";
  if (rope.is_null() || !rope.has(kWeight) || rope.at(kWeight).real() == 0) return 1;
  const std::string_view key = rope.has("rope_type") ? "rope_type" : "type";
  if (!rope.has(key) || rope.at(key).string() == "default") return 1;
  const auto squared = squared_temperature(rope.at("factor").positive_f32(), 0.1 * rope.at(kWeight).real());
  if (!squared) rope.at(kWeight).fail("a weight whose factor of the scores is above 0");
  return *squared;
}

TokenIndexConfig read_index(const JsonCursor& root, const TokenIndexConfig& defaults) {
  if (defaults.chosen == 0) return {};
  return {.chosen = hf_count(root, "index_topk", kMaxContext, defaults.chosen),
          .heads = hf_count(root, "index_n_heads", kMaxHeads, defaults.heads),
          .dim = hf_count(root, "index_head_dim", kMaxWidth, defaults.dim)};
}

TokenIndexConfig gguf_index(const GgufKeys& keys) {
  if (!keys.nonzero("attention.indexer.top_k")) return {};
  return {.chosen = keys.count("attention.indexer.top_k", kMaxContext),
          .heads = keys.count("attention.indexer.head_count", kMaxHeads),
          .dim = keys.count("attention.indexer.key_length", kMaxWidth)};
}

/// Reads a list or letters that name the layers that take another layer's choice.
std::vector<bool> listed_choices(const JsonCursor& list, std::size_t layers) {
  std::vector<bool> shared(layers);
  const bool letters = list.value().is_string();
  const std::string text = letters ? list.string() : "";
  if ((letters ? text.size() : list.array_size()) != layers)
    list.fail("one kind for each of " + std::to_string(layers) + " layers");
  const auto place = [&](std::size_t layer) { return letters ? list : list.at(layer); };
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::string kind = letters ? text.substr(layer, 1) : list.at(layer).string();
    if (kind != "full" && kind != "shared" && kind != "F" && kind != "S") place(layer).fail("\"full\" or \"shared\"");
    shared[layer] = kind == "shared" || kind == "S";
  }
  if (shared.front()) place(0).fail("an index of its own in the first layer");
  return shared;
}

/// Returns the layers that take another layer's choice: as a list says, or all but every freq-th layer from an offset
/// on. Source: GlmMoeDsaConfig in Transformers.
std::vector<bool> shared_choices(const JsonCursor& root, std::size_t layers) {
  for (const std::string_view key : {"indexer_types", "index_topk_pattern"})
    if (root.has(key)) return listed_choices(root.at(key), layers);
  constexpr std::string_view kFreq = "index_topk_freq", kOffset = "index_skip_topk_offset";
  const std::size_t freq = root.has(kFreq) ? std::max<std::size_t>(1, root.at(kFreq).unsigned_integer(kMaxLayers)) : 1,
                    offset = root.has(kOffset) ? root.at(kOffset).unsigned_integer(kMaxLayers) : 2;
  std::vector<bool> shared(layers);
  for (std::size_t layer = 0; layer < layers; ++layer)
    shared[layer] = (layer + 1 > offset ? layer + 1 - offset : 0) % freq != 0;
  if (shared.front()) root.at(kOffset).fail("an index of its own in the first layer");
  return shared;
}

/// Refuses an index whose heads do not hold the channels that rotate, or whose queries have no latent.
void check_index(const LatentConfig& latent, std::size_t rotated, std::string_view where) {
  if (latent.index.chosen == 0 || (latent.index.dim >= rotated && latent.query_rank > 0)) return;
  throw Error(ErrorCode::kInput, where,
              "found an index with heads of " + std::to_string(latent.index.dim) +
                  " channels and a latent of queries of " + std::to_string(latent.query_rank) +
                  ", expected at least the " + std::to_string(rotated) + " channels that rotate, and a latent");
}

/// Gives all layers the same latent attention. @param temperature  multiplies the scores
void set_latent_attention(ModelConfig& config, const LatentConfig& latent, std::size_t shared, double temperature) {
  const double channels = static_cast<double>(latent.plain_dim) + static_cast<double>(shared);
  for (LayerConfig& layer : config.layer) {
    AttentionConfig& attention = layer.attention;
    attention.kv_heads = 1;
    attention.head_dim = shared + latent.rank;
    attention.scale = static_cast<float>(temperature / std::sqrt(channels));
    attention.one_row = true;
    attention.latent = latent;
  }
}

/// Like score_temperature(). llama.cpp stores a tenth of mscale_all_dim.
double gguf_temperature(const GgufKeys& keys) {
  constexpr std::string_view kMultiplier = "rope.scaling.yarn_log_multiplier";
  if (!keys.has(kMultiplier) || !keys.has("rope.scaling.type") || keys.text("rope.scaling.type") != "yarn") return 1;
  const auto squared = squared_temperature(keys.positive("rope.scaling.factor"), keys.real(kMultiplier));
  if (!squared)
    keys.fail(ErrorCode::kInput, kMultiplier, "found a weight whose factor of the scores is not a number above 0");
  return *squared;
}

}  // namespace

void read_latent_attention(const JsonCursor& root, ModelConfig& config, const LatentDefaults& defaults) {
  const LatentConfig latent{.rank = hf_count(root, "kv_lora_rank", kMaxWidth, defaults.rank),
                            .query_rank = query_rank(root, defaults.query_rank),
                            .plain_dim = hf_count(root, "qk_nope_head_dim", kMaxWidth, defaults.plain_dim),
                            .value_dim = hf_count(root, "v_head_dim", kMaxWidth, defaults.value_dim),
                            .index = read_index(root, defaults.index)};
  const std::size_t shared = hf_count(root, "qk_rope_head_dim", kMaxWidth, defaults.shared_key_dim);
  check_index(latent, shared, root.place());
  set_latent_attention(config, latent, shared, score_temperature(root));
  if (!defaults.index_types) return;
  const std::vector<bool> others = shared_choices(root, config.layers());
  for (std::size_t layer = 0; layer < config.layers(); ++layer)
    config.layer[layer].attention.latent.index.shared = others[layer];
}

void read_gguf_latent_attention(const GgufKeys& keys, ModelConfig& config) {
  const bool absorbed = keys.has("attention.key_length_mla");
  const std::string_view key_length = absorbed ? "attention.key_length_mla" : "attention.key_length",
                         value_length = absorbed ? "attention.value_length_mla" : "attention.value_length",
                         query_rank = "attention.q_lora_rank", rotated = "rope.dimension_count";
  const std::size_t head = keys.count(key_length, kMaxWidth), shared = keys.count(rotated, kMaxWidth);
  if (shared % 2 != 0 || shared >= head)
    keys.fail(
        ErrorCode::kInput, rotated,
        "found " + std::to_string(shared) + ", expected an even number below the head size, " + std::to_string(head));
  const LatentConfig latent{.rank = keys.count("attention.kv_lora_rank", kMaxWidth),
                            .query_rank = keys.nonzero(query_rank) ? keys.count(query_rank, kMaxWidth) : 0,
                            .plain_dim = head - shared,
                            .value_dim = keys.count(value_length, kMaxWidth),
                            .index = gguf_index(keys)};
  if (absorbed) {
    keys.must_equal("attention.key_length", latent.rank + shared, "the size of a row");
    keys.must_equal("attention.value_length", latent.rank, "the size of the latent");
  }
  check_index(latent, shared, keys.place("attention.indexer"));
  set_latent_attention(config, latent, shared, gguf_temperature(keys));
}

}  // namespace kvs::inline model
