// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/source.h"

#include <algorithm>
#include <cmath>

#include "calibrate/elitekv/obstacles.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

/// Adds a pair to the layer's factors: below the existing rows and next to the existing columns.
void append_factor(const EliteFactor& factor, std::size_t d_model, const FactorReader& read, EliteLayer& layer) {
  const std::vector<float> up = read(factor.up, {factor.rows, factor.rank}),
                           down = read(factor.down, {factor.rank, d_model});
  const std::size_t before = layer.rank, rank = before + factor.rank,
                    rows_before = before == 0 ? 0 : layer.up.size() / before;
  std::vector<float> joined((rows_before + factor.rows) * rank);
  for (std::size_t row = 0; row < rows_before; ++row)
    std::copy_n(layer.up.data() + row * before, before, joined.data() + row * rank);
  for (std::size_t row = 0; row < factor.rows; ++row)
    std::copy_n(up.data() + row * factor.rank, factor.rank, joined.data() + (rows_before + row) * rank + before);
  layer.up = std::move(joined);
  layer.down.insert(layer.down.end(), down.begin(), down.end());
  layer.rank = rank;
}

}  // namespace

void require_kv_head_sets(const EliteConfig& config, const ModelConfig& model, const std::filesystem::path& path) {
  if (config.granularity == Granularity::kQueryHead && model.group() > 1)
    throw Error(ErrorCode::kUnsupported, path.string() + ": /calibration/ropelite/granularity",
                "found query-head, expected kv-head: query heads that share a key cannot have rows of their own");
}

void require_all_layers(const EliteConfig& config, const ModelConfig& model, const std::filesystem::path& path) {
  if (config.layers.size() != model.layers())
    throw Error(ErrorCode::kUnsupported, path.string() + ": /parameters/layers",
                "found " + std::to_string(config.layers.size()) + " of " + std::to_string(model.layers()) +
                    " layers, expected all: the format has no layer with a full cache");
}

void require_one_r(const EliteConfig& config, const std::filesystem::path& path) {
  for (const EliteAllocation& size : config.by_layer)
    if (size.r != config.r)
      throw Error(ErrorCode::kUnsupported, path.string() + ": /parameters/r",
                  "found " + std::to_string(size.r) + " and " + std::to_string(config.r) +
                      ", expected one number for all layers: the format states it once");
}

EliteSource::EliteSource(const Json& json, const std::filesystem::path& path, const ModelSource& source)
    : source_(&source), config_(read_elite_config(json, path.string())) {
  require_kv_head_sets(config_, source.config(), path);
  if (!config_.rank) return;
  if (const std::string obstacle = factor_obstacle(source.config()); !obstacle.empty())
    throw Error(ErrorCode::kUnsupported, path.string() + ": /files", obstacle);
  file_ = path.parent_path() / json.at("files").at(0).at("path").get<std::string>();
  archive_ = open_safetensors(file_);
}

EliteLayer elite_layer(const EliteConfig& config, std::size_t n, const ModelSource& source, const FactorReader& read) {
  const ModelConfig& model = source.config();
  EliteLayer layer;
  layer.layer = config.layers[n];
  for (const ElitePicks& head : config.picks[n]) layer.elite.push_back(head.chunks);
  if (!config.rank) return layer;
  for (const EliteFactor& factor : elite_factors(config, n, model.kv_heads(), model.head_dim()))
    append_factor(factor, model.d_model, read, layer);
  layer.key_rows = source.projection(layer.layer, 'k');
  layer.key_bias = source.projection_bias(layer.layer, 'k');
  layer.value_bias = source.projection_bias(layer.layer, 'v');
  const std::size_t queries = model.query_heads() * model.head_dim();
  if (config.fitted_queries) {
    const EliteQueries names = elite_queries(layer.layer);
    layer.query_rows = read(names.weight, {queries, model.d_model});
    if (!source.projection_bias(layer.layer, 'q').empty()) layer.query_bias = read(names.bias, {queries});
  }
  if (config.fitted_outputs) layer.output = read(elite_output(layer.layer), {queries, queries});
  return layer;
}

EliteLayer EliteSource::layer(std::size_t n) const {
  return elite_layer(config_, n, *source_, config_.rank ? reader_of(*archive_, file_) : FactorReader());
}

}  // namespace kvs::inline calibrate
