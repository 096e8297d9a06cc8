#include "eval/elite_config.h"

#include "core/error.h"
#include "io/tensor_archive.h"

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

/// up · down [rows, d_model] in double, appended to `product`.
void append_product(const TensorArchive& archive, const std::filesystem::path& path, const std::string& up_name,
                    const std::string& down_name, std::size_t rows, std::size_t d_model, std::vector<double>& product,
                    std::size_t& rank) {
  const Factor up = read_factor(archive, path, up_name), down = read_factor(archive, path, down_name);
  if (up.rows != rows)
    throw Error(ErrorCode::kInput, path.string() + ": tensor " + up_name,
                "found " + std::to_string(up.rows) + " rows, expected " + std::to_string(rows) +
                    ", those of the chunks that are not elite and of the values");
  if (up.columns != down.rows || down.columns != d_model)
    throw Error(ErrorCode::kInput, path.string() + ": tensor " + down_name,
                "found shape [" + std::to_string(down.rows) + ", " + std::to_string(down.columns) + "], expected [" +
                    std::to_string(up.columns) + ", " + std::to_string(d_model) + "]");
  rank += up.columns;
  const std::size_t start = product.size();
  product.resize(start + up.rows * d_model);
  for (std::size_t row = 0; row < up.rows; ++row) {
    double* out = product.data() + start + row * d_model;
    for (std::size_t k = 0; k < up.columns; ++k) {
      const double scale = up.values[row * up.columns + k];
      const float* from = down.values.data() + k * d_model;
      for (std::size_t column = 0; column < d_model; ++column) out[column] += scale * from[column];
    }
  }
}

/// Of the rows that EliteLayer::projection yields; empty if neither keys nor values have one.
std::vector<float> joined_bias(const ModelSource& source, std::size_t layer) {
  const std::size_t rows = source.config().kv_heads * source.config().head_dim;
  std::vector<float> keys = source.projection_bias(layer, 'k'), values = source.projection_bias(layer, 'v');
  if (keys.empty() && values.empty()) return {};
  keys.resize(rows);
  values.resize(rows);
  keys.insert(keys.end(), values.begin(), values.end());
  return keys;
}

}  // namespace

std::string factor_obstacle(const ModelConfig& model) {
  if (model.arithmetic.qk_norm == QkNorm::kNone) return {};
  return "found a model that normalises its keys after their projection (" + model.architecture +
         ": QK-norm), expected one whose keys are linear in the layer's input: low-rank factors of W_k are not defined "
         "for it, RoPElite alone is";
}

EliteConfig load_elite_config(const Json& config, const std::filesystem::path& path, const ModelSource& source) {
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
  const double full = 2.0 * static_cast<double>(model.kv_heads * model.head_dim);
  EliteConfig result;
  result.cache_values_per_token = full * static_cast<double>(model.layers - layers.size());
  for (std::size_t n = 0; n < layers.size(); ++n) {
    EliteLayer layer{layers[n], elite[n], {}, {}};
    std::size_t rank = 0;
    if (archive) {
      const std::string prefix = "layers." + std::to_string(layers[n]) + ".";
      std::vector<double> product;
      const std::size_t values = model.kv_heads * model.head_dim,
                        keys = values - 2 * elite[n].front().size() * model.kv_heads;
      const auto append = [&](const std::string& part, std::size_t rows) {
        append_product(*archive, factors, prefix + "up" + part, prefix + "down" + part, rows, model.d_model, product,
                       rank);
      };
      if (joint) {
        append("", keys + values);
      } else {
        append("_k", keys);
        append("_v", values);
      }
      layer.projection = merge_projection(source.projection(layers[n], 'k'), product, elite[n], model.head_dim,
                                          model.rotary_dim(), model.d_model);
      layer.bias = joined_bias(source, layers[n]);
    }
    const double rotated = 2.0 * static_cast<double>(elite[n].front().size() * model.kv_heads);
    result.cache_values_per_token += archive ? rotated + static_cast<double>(rank) : full;
    result.layers.push_back(std::move(layer));
  }
  return result;
}

}  // namespace kvs
