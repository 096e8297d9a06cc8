#include "eval/elite_config.h"

#include <algorithm>

#include "core/error.h"
#include "io/tensor_archive.h"
#include "model/rope.h"
#include "policy/full.h"

namespace kvs {
namespace {

struct Factor {
  std::vector<float> values;
  std::size_t rows = 0, columns = 0;
};

Factor read_factor(const TensorArchive& archive, const std::filesystem::path& path, const std::string& name) {
  const StoredTensor* tensor = archive.find(name);
  if (tensor == nullptr || tensor->shape.size() != 2)
    throw Error(ErrorCode::kInput, path.string() + ": tensor " + name, "found none, expected a factor of rank 2");
  Factor factor{{}, tensor->rows(), tensor->columns()};
  factor.values.resize(factor.rows * factor.columns);
  read_rows(*tensor, 0, factor.rows, factor.values);
  return factor;
}

/// Adds up and down to the layer's: below the rows and beside the columns that are there.
void append_factors(const TensorArchive& archive, const std::filesystem::path& path, const std::string& up_name,
                    const std::string& down_name, std::size_t rows, std::size_t d_model, EliteLayer& layer) {
  const Factor up = read_factor(archive, path, up_name), down = read_factor(archive, path, down_name);
  if (up.rows != rows)
    throw Error(ErrorCode::kInput, path.string() + ": tensor " + up_name,
                "found " + std::to_string(up.rows) + " rows, expected " + std::to_string(rows) +
                    ", those of the chunks that are not elite and of the values");
  if (up.columns != down.rows || down.columns != d_model)
    throw Error(ErrorCode::kInput, path.string() + ": tensor " + down_name,
                "found shape [" + std::to_string(down.rows) + ", " + std::to_string(down.columns) + "], expected [" +
                    std::to_string(up.columns) + ", " + std::to_string(d_model) + "]");
  const std::size_t before = layer.rank, rank = before + up.columns,
                    rows_before = before == 0 ? 0 : layer.up.size() / before;
  std::vector<float> joined((rows_before + rows) * rank);
  for (std::size_t row = 0; row < rows_before; ++row)
    std::copy_n(layer.up.data() + row * before, before, joined.data() + row * rank);
  for (std::size_t row = 0; row < rows; ++row)
    std::copy_n(up.values.data() + row * up.columns, up.columns, joined.data() + (rows_before + row) * rank + before);
  layer.up = std::move(joined);
  layer.down.insert(layer.down.end(), down.values.begin(), down.values.end());
  layer.rank = rank;
}

}  // namespace

std::string factor_obstacle(const ModelConfig& model) {
  if (model.arithmetic.qk_norm == QkNorm::kNone) return {};
  return "found a model that normalises its keys after their projection (" + model.architecture +
         ": QK-norm), expected one whose keys are linear in the layer's input: low-rank factors of W_k are not defined "
         "for it, RoPElite alone is";
}

std::vector<EliteLayer> load_elite_config(const Json& config, const std::filesystem::path& path,
                                          const ModelSource& source) {
  const ModelConfig& model = source.config();
  const Json& parameters = config.at("parameters");
  const auto elite = parameters.at("elite").get<std::vector<std::vector<std::vector<std::size_t>>>>();
  const auto layers = parameters.at("layers").get<std::vector<std::size_t>>();
  if (config.at("calibration").at("ropelite").at("granularity") == "query-head" && model.group() > 1)
    throw Error(ErrorCode::kUnsupported, path.string() + ": /calibration/ropelite/granularity",
                "found query-head, expected kv-head: query heads that share a key cannot have rows of their own");
  std::unique_ptr<TensorArchive> archive;
  std::filesystem::path factors;
  if (!config.at("files").empty()) {
    if (const std::string obstacle = factor_obstacle(model); !obstacle.empty())
      throw Error(ErrorCode::kUnsupported, path.string() + ": /files", obstacle);
    factors = path.parent_path() / config.at("files").at(0).at("path").get<std::string>();
    archive = open_safetensors(factors);
  }
  const bool joint = parameters.at("factorization") == "joint";
  std::vector<EliteLayer> result;
  for (std::size_t n = 0; n < layers.size(); ++n) {
    EliteLayer layer;
    layer.layer = layers[n];
    layer.elite = elite[n];
    if (archive) {
      const std::string prefix = "layers." + std::to_string(layers[n]) + ".";
      const std::size_t values = model.kv_heads * model.head_dim,
                        keys = values - 2 * elite[n].front().size() * model.kv_heads;
      const auto append = [&](const std::string& part, std::size_t rows) {
        append_factors(*archive, factors, prefix + "up" + part, prefix + "down" + part, rows, model.d_model, layer);
      };
      if (joint) {
        append("", keys + values);
      } else {
        append("_k", keys);
        append("_v", values);
      }
      layer.key_rows = source.projection(layers[n], 'k');
      layer.key_bias = source.projection_bias(layers[n], 'k');
      layer.value_bias = source.projection_bias(layers[n], 'v');
    }
    result.push_back(std::move(layer));
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

Cache EliteCaches::make() const {
  std::vector<std::unique_ptr<LayerCache>> layers;
  for (const auto& products : products_) layers.push_back(products ? make_elitekv_cache(products) : make_full_cache());
  return Cache(std::move(layers));
}

}  // namespace kvs
