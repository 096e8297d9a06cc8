// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cost/cost_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "analyzers/chunk_grid.h"
#include "core/error.h"
#include "core/nearest.h"
#include "kernels/spectral_ops.h"
#include "model/work.h"

namespace kvs::inline calibrate {
namespace {

ModelConfig geometry(const char* name, std::size_t layers, std::size_t d_model, std::size_t d_ff,
                     std::size_t query_heads, std::size_t kv_heads, std::size_t head_dim, std::size_t vocabulary) {
  const LayerConfig layer{.attention = {.query_heads = query_heads, .kv_heads = kv_heads, .head_dim = head_dim},
                          .feed_forward = {.d_ff = d_ff}};
  return {.name = name,
          .architecture = {},
          .layer = std::vector(layers, layer),
          .d_model = d_model,
          .vocabulary = vocabulary};
}

}  // namespace

std::span<const ModelConfig> known_geometries() {
  static const std::array kGeometries{
      geometry("llama2-7b", 32, 4096, 11008, 32, 32, 128, 32000),
      geometry("llama2-13b", 40, 5120, 13824, 40, 40, 128, 32000),
      geometry("llama3-8b", 32, 4096, 14336, 32, 8, 128, 128256),
      geometry("qwen2.5-7b", 28, 3584, 18944, 28, 4, 128, 152064),
      geometry("smollm2-135m", 30, 576, 1536, 9, 3, 64, 49152),
  };
  return kGeometries;
}

const ModelConfig& known_geometry(std::string_view name) {
  std::vector<std::string> names;
  for (const ModelConfig& model : known_geometries()) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  throw Error(ErrorCode::kUsage, "geometry",
              "found '" + std::string(name) + "', expected one of " + listed(names) + did_you_mean(name, names));
}

std::size_t compressions(const SlotOptions& slots, std::size_t tokens) noexcept {
  if (tokens <= slots.cache_size) return 0;
  const std::size_t freed = slots.compressible() - slots.kept();
  return (tokens - slots.cache_size + freed - 1) / freed;
}

double attention_pairs(const SlotOptions& slots, std::size_t tokens) noexcept {
  const std::size_t first = std::min(tokens, slots.cache_size), held = slots.sinks + slots.kept();
  double pairs = static_cast<double>(first) * static_cast<double>(first);
  for (std::size_t done = first; done < tokens;) {
    const std::size_t group = std::min(slots.cache_size - held, tokens - done);
    pairs += static_cast<double>(group) * static_cast<double>(held + group);
    done += group;
  }
  return pairs;
}

double prefill_flops(const ModelConfig& model, std::size_t tokens, double pairs) {
  const auto width = static_cast<double>(mixed_channels(model));
  return 2 * (products_per_token(model) * static_cast<double>(tokens) + 2 * pairs * width);
}

double transform_flops(const ModelConfig& model, const SlotOptions& slots, std::size_t tokens) {
  const auto n = static_cast<double>(slots.compressible());
  return static_cast<double>(compressions(slots, tokens) * model.cache_values_per_token()) * n * std::log2(n);
}

std::size_t lagkv_tokens(std::size_t tokens, std::size_t sinks, std::size_t lag, double ratio) noexcept {
  if (tokens < sinks + 2 * lag) return tokens;
  const std::size_t partitions = (tokens - sinks) / lag;
  const auto kept = static_cast<std::size_t>(ratio * static_cast<double>(lag));
  return sinks + kept * (partitions - 1) + lag + (tokens - sinks) % lag;
}

std::size_t SpectrumSize::kept_bins(std::size_t tokens, double share) const noexcept {
  return first_bin_of(kept_count(share, chunks), chunks, bins_of(Transform::kDft, tokens - sinks - recent));
}

std::size_t SpectrumSize::size(std::size_t tokens, double share) const noexcept {
  return tokens <= sinks + recent ? tokens : sinks + recent + 2 * kept_bins(tokens, share);
}

}  // namespace kvs::inline calibrate
