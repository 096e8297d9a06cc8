#include "calibrate/elitekv/source.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace kvs {
namespace {

/// Adds a pair to the layer's factors: below the rows and beside the columns that are there.
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

std::string factor_obstacle(const ModelConfig& model) {
  if (model.arithmetic.qk_norm == QkNorm::kNone) return {};
  return "found a model that normalises its keys after their projection (" + model.architecture +
         ": QK-norm), expected one whose keys are linear in the layer's input: low-rank factors of W_k are not defined "
         "for it, RoPElite alone is";
}

void require_kv_head_sets(const EliteConfig& config, const ModelConfig& model, const std::filesystem::path& path) {
  if (config.granularity == Granularity::kQueryHead && model.group() > 1)
    throw Error(ErrorCode::kUnsupported, path.string() + ": /calibration/ropelite/granularity",
                "found query-head, expected kv-head: query heads that share a key cannot have rows of their own");
}

void require_all_layers(const EliteConfig& config, const ModelConfig& model, const std::filesystem::path& path) {
  if (config.layers.size() != model.layers)
    throw Error(ErrorCode::kUnsupported, path.string() + ": /parameters/layers",
                "found " + std::to_string(config.layers.size()) + " of " + std::to_string(model.layers) +
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

void check_elite_factors(const Json& json, const std::filesystem::path& path) {
  const EliteConfig config = read_elite_config(json, path.string());
  if (!config.rank) return;
  const Json& model = json.at("model");
  const auto kv_heads = model.at("kv_heads").get<std::size_t>(), head_dim = model.at("head_dim").get<std::size_t>();
  const std::uint64_t queries = model.at("query_heads").get<std::uint64_t>() * head_dim;
  const std::filesystem::path file = path.parent_path() / json.at("files").at(0).at("path").get<std::string>();
  const auto archive = open_safetensors(file);
  const FactorReader read = reader_of(*archive, file);
  const std::string first = elite_factors(config, 0, kv_heads, head_dim).front().down;
  const StoredTensor* const down = archive->find(first);
  const std::uint64_t d_model = down == nullptr || down->shape.size() != 2 ? 0 : down->shape[1];
  for (std::size_t n = 0; n < config.layers.size(); ++n) {
    for (const EliteFactor& factor : elite_factors(config, n, kv_heads, head_dim)) {
      (void)read(factor.up, {factor.rows, factor.rank});
      (void)read(factor.down, {factor.rank, d_model});
    }
    const EliteQueries fitted = elite_queries(config.layers[n]);
    if (config.fitted_queries) (void)read(fitted.weight, {queries, d_model});
    if (config.fitted_queries && archive->find(fitted.bias) != nullptr) (void)read(fitted.bias, {queries});
    if (config.fitted_outputs) (void)read(elite_output(config.layers[n]), {queries, queries});
  }
}

EliteLayer elite_layer(const EliteConfig& config, std::size_t n, const ModelSource& source, const FactorReader& read) {
  const ModelConfig& model = source.config();
  EliteLayer layer;
  layer.layer = config.layers[n];
  for (const ElitePicks& head : config.picks[n]) layer.elite.push_back(head.chunks);
  if (!config.rank) return layer;
  for (const EliteFactor& factor : elite_factors(config, n, model.kv_heads, model.head_dim))
    append_factor(factor, model.d_model, read, layer);
  layer.key_rows = source.projection(layer.layer, 'k');
  layer.key_bias = source.projection_bias(layer.layer, 'k');
  layer.value_bias = source.projection_bias(layer.layer, 'v');
  const std::size_t queries = model.query_heads * model.head_dim;
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

}  // namespace kvs
