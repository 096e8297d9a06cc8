#include "eval/elite_caches.h"

#include <algorithm>

#include "core/error.h"
#include "export/elite_config.h"
#include "io/tensor_archive.h"
#include "model/rope.h"
#include "policy/full.h"

namespace kvs {
namespace {

/// A tensor of the factors' file. @param rows, columns  what its shape must be; 0: anything
std::vector<float> read_factor(const TensorArchive& archive, const std::filesystem::path& path, const std::string& name,
                               std::size_t rows, std::size_t columns) {
  const StoredTensor* tensor = archive.find(name);
  if (tensor == nullptr || tensor->shape.size() != 2 || tensor->rows() != rows || tensor->columns() != columns)
    throw Error(ErrorCode::kInput, path.string() + ": tensor " + name,
                "found " + (tensor == nullptr ? "none" : "shape " + Json(tensor->shape).dump()) + ", expected [" +
                    std::to_string(rows) + ',' + std::to_string(columns) + ']');
  std::vector<float> values(rows * columns);
  read_rows(*tensor, 0, rows, values);
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

std::vector<EliteLayer> load_elite_config(const Json& json, const std::filesystem::path& path,
                                          const ModelSource& source) {
  const ModelConfig& model = source.config();
  const EliteConfig config = read_elite_config(json, path.string());
  if (config.granularity == Granularity::kQueryHead && model.group() > 1)
    throw Error(ErrorCode::kUnsupported, path.string() + ": /calibration/ropelite/granularity",
                "found query-head, expected kv-head: query heads that share a key cannot have rows of their own");
  std::unique_ptr<TensorArchive> archive;
  std::filesystem::path file;
  if (config.rank) {
    if (const std::string obstacle = factor_obstacle(model); !obstacle.empty())
      throw Error(ErrorCode::kUnsupported, path.string() + ": /files", obstacle);
    file = path.parent_path() / json.at("files").at(0).at("path").get<std::string>();
    archive = open_safetensors(file);
  }
  std::vector<EliteLayer> result;
  for (std::size_t n = 0; n < config.layers.size(); ++n) {
    EliteLayer& layer = result.emplace_back();
    layer.layer = config.layers[n];
    for (const ElitePicks& head : config.picks[n]) layer.elite.push_back(head.chunks);
    if (!archive) continue;
    for (const EliteFactor& factor : elite_factors(config, n, model.kv_heads, model.head_dim))
      append_factor(factor, *archive, file, model.d_model, layer);
    layer.key_rows = source.projection(layer.layer, 'k');
    layer.key_bias = source.projection_bias(layer.layer, 'k');
    layer.value_bias = source.projection_bias(layer.layer, 'v');
  }
  return result;
}

EliteCaches::EliteCaches(Backend& backend, const ModelConfig& model, const std::vector<EliteLayer>& layers,
                         std::size_t tokens)
    : products_(model.layers) {
  for (const EliteLayer& layer : layers) {
    const EliteLayerShape geometry{
        .query_heads = model.query_heads,
        .kv_heads = model.kv_heads,
        .head_dim = model.head_dim,
        .chunks = model.chunks(),
        .d_model = model.d_model,
        .rope_factor = static_cast<float>(rope_angles(model.rope(layer.layer), tokens).factor)};
    products_[layer.layer] = make_elite_products(backend, layer, geometry);
  }
}

Cache EliteCaches::make(const std::vector<StateStore>& stores) const {
  std::vector<std::unique_ptr<LayerCache>> layers;
  for (std::size_t layer = 0; layer < products_.size(); ++layer) {
    const StateStore store = stores.empty() ? StateStore{} : stores[layer];
    layers.push_back(products_[layer] ? make_elitekv_cache(products_[layer], store) : make_full_cache(store));
  }
  return Cache(std::move(layers));
}

}  // namespace kvs
