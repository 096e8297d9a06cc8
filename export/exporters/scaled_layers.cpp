// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/scaled_layers.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "export/exporters/engine_types.h"
#include "model/cache_shape.h"

namespace kvs::inline exporting {
namespace {

bool has_one_scale(const std::vector<float>& scales) {
  return std::ranges::all_of(scales, [&](float scale) { return scale == scales.front(); });
}

/// Returns the scales of a side: 1 if the config gives none.
std::vector<float> scales_of(const RowType& side) { return side.scales.empty() ? std::vector<float>{1} : side.scales; }

/// @param names  of `kinds`, for messages
ScaledLayers layers_of(const ExportJob& job, std::span<const RowKind> kinds, const std::string& names) {
  (void)resolved_parameters(job);  // throws for invalid parameters
  const ModelConfig& model = job.model.config();
  Parameters reader = parameter_reader(job);
  const CacheShape shape = cache_shape(model);
  ScaledLayers found;
  for (const std::size_t layer : model.cached_layers()) {
    const KvTypes types = reader.select(layer) ? read_kv_types(reader, layer, shape) : KvTypes{};
    const RowKind k = types.k.format.kind, v = types.v.format.kind;
    const bool plain = k == v && (k == RowKind::kF32 || k == RowKind::kF16 || k == RowKind::kBF16);
    if (plain)
      found.skipped.push_back(layer);
    else if (k != v || std::ranges::find(kinds, k) == kinds.end())
      refuse_parameter(
          job, "type",
          "found layer " + std::to_string(layer) + " with another kind, expected " + names + " of keys and values");
    else
      found.layers.push_back({layer, k, scales_of(types.k), scales_of(types.v)});
  }
  if (found.layers.empty()) refuse_parameter(job, "type", "found no " + names + ", expected it in some layers");
  found.by_head = !std::ranges::all_of(
      found.layers, [](const auto& layer) { return has_one_scale(layer.k) && has_one_scale(layer.v); });
  for (auto& [index, kind, k, v] : found.layers) {
    const std::size_t count = found.by_head ? model.layer[index].attention.kv_heads : 1;
    k.resize(count, k.front());
    v.resize(count, v.front());
  }
  return found;
}

}  // namespace

bool ScaledLayers::are_alike() const {
  return skipped.empty() &&
         std::ranges::all_of(layers, [&](const Layer& layer) { return layer.kind == layers.front().kind; });
}

std::vector<std::size_t> ScaledLayers::indices() const {
  std::vector<std::size_t> all;
  all.reserve(layers.size());
  for (const Layer& layer : layers) all.push_back(layer.index);
  return all;
}

ScaledLayers fp8_layers_of(const ExportJob& job) { return layers_of(job, std::array{RowKind::kE4m3}, "fp8"); }

ScaledLayers map_layers_of(const ExportJob& job) {
  ScaledLayers found = layers_of(job, std::array{RowKind::kE4m3, RowKind::kNvFp4}, "fp8 or nvfp4");
  if (found.by_head) refuse_parameter(job, "scale_k", "found scales by head, expected one for each layer");
  return found;
}

}  // namespace kvs::inline exporting
