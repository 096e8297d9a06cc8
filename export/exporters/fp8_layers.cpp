#include "export/exporters/fp8_layers.h"

#include <algorithm>
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

}  // namespace

Fp8Layers fp8_layers_of(const ExportJob& job) {
  (void)resolved_parameters(job);  // throws for invalid parameters
  const ModelConfig& model = job.model.config();
  Parameters reader = parameter_reader(job);
  const CacheShape shape = cache_shape(model);
  Fp8Layers found;
  for (const std::size_t layer : model.cached_layers()) {
    const KvTypes types = reader.select(layer) ? read_kv_types(reader, layer, shape) : KvTypes{};
    const RowKind k = types.k.format.kind, v = types.v.format.kind;
    const bool plain = k == v && (k == RowKind::kF32 || k == RowKind::kF16 || k == RowKind::kBF16);
    if (plain)
      found.skipped.push_back(layer);
    else if (k != RowKind::kE4m3 || v != RowKind::kE4m3)
      refuse_parameter(job, "type",
                       "found layer " + std::to_string(layer) + " with another kind, expected fp8 of keys and values");
    else
      found.layers.push_back({layer, scales_of(types.k), scales_of(types.v)});
  }
  if (found.layers.empty()) refuse_parameter(job, "type", "found no fp8, expected it in some layers");
  found.by_head = !std::ranges::all_of(
      found.layers, [](const auto& layer) { return has_one_scale(layer.k) && has_one_scale(layer.v); });
  for (auto& [index, k, v] : found.layers) {
    const std::size_t count = found.by_head ? model.layer[index].attention.kv_heads : 1;
    k.resize(count, k.front());
    v.resize(count, v.front());
  }
  return found;
}

}  // namespace kvs::inline exporting
