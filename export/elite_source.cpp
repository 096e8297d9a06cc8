#include "export/elite_source.h"

#include <algorithm>

#include "core/error.h"

namespace kvs {
namespace {

/// A tensor of the factors' file, of this shape.
std::vector<float> read_factor(const TensorArchive& archive, const std::filesystem::path& path, const std::string& name,
                               std::size_t rows, std::size_t columns) {
  const StoredTensor* tensor = archive.find(name);
  if (tensor == nullptr || tensor->shape.size() != 2 || tensor->rows() != rows || tensor->columns() != columns)
    throw Error(ErrorCode::kInput, path.string() + ": tensor " + name,
                "found " + (tensor == nullptr ? "none" : "shape " + Json(tensor->shape).dump()) + ", expected [" +
                    std::to_string(rows) + ',' + std::to_string(columns) + ']');
  std::vector<float> values(rows * columns);
  read_rows(*tensor, 0, rows, values);
  archive.release(tensor->bytes);
  return values;
}

/// Adds a pair to the layer's factors: below the rows and beside the columns that are there.
void append_factor(const EliteFactor& factor, const TensorArchive& archive, const std::filesystem::path& path,
                   std::size_t d_model, EliteLayer& layer) {
  const std::vector<float> up = read_factor(archive, path, factor.up, factor.rows, factor.rank),
                           down = read_factor(archive, path, factor.down, factor.rank, d_model);
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

EliteSource::EliteSource(const Json& json, const std::filesystem::path& path, const ModelSource& source)
    : source_(&source), config_(read_elite_config(json, path.string())) {
  require_kv_head_sets(config_, source.config(), path);
  if (!config_.rank) return;
  if (const std::string obstacle = factor_obstacle(source.config()); !obstacle.empty())
    throw Error(ErrorCode::kUnsupported, path.string() + ": /files", obstacle);
  file_ = path.parent_path() / json.at("files").at(0).at("path").get<std::string>();
  archive_ = open_safetensors(file_);
}

EliteLayer EliteSource::layer(std::size_t n) const {
  const ModelConfig& model = source_->config();
  EliteLayer layer;
  layer.layer = config_.layers[n];
  for (const ElitePicks& head : config_.picks[n]) layer.elite.push_back(head.chunks);
  if (!archive_) return layer;
  for (const EliteFactor& factor : elite_factors(config_, n, model.kv_heads, model.head_dim))
    append_factor(factor, *archive_, file_, model.d_model, layer);
  layer.key_rows = source_->projection(layer.layer, 'k');
  layer.key_bias = source_->projection_bias(layer.layer, 'k');
  layer.value_bias = source_->projection_bias(layer.layer, 'v');
  return layer;
}

}  // namespace kvs
