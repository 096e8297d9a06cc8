#include "calibrate/transform/config.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "calibrate/config/config_lists.h"
#include "calibrate/config/tensors.h"
#include "calibrate/transform/bits.h"
#include "core/error.h"
#include "io/layer_sizes.h"

namespace kvs::inline calibrate {
namespace {

std::string tensor_name(std::size_t layer, const std::string& what) {
  return "layers." + std::to_string(layer) + '.' + what;
}

std::vector<float> floats(std::span<const std::size_t> values) { return {values.begin(), values.end()}; }

std::string_view name_of(TransformRows rows) { return kTransformRowNames[static_cast<std::size_t>(rows)]; }

/// Returns the values. @throws Error kInput for the first value that is not `good`
std::vector<float> checked(std::vector<float> values, bool (*good)(float), const char* expected,
                           const std::string& where) {
  const auto bad = std::ranges::find_if_not(values, good);
  if (bad != values.end())
    throw Error(ErrorCode::kInput, where, "found " + std::to_string(*bad) + ", expected " + expected);
  return values;
}

std::vector<std::size_t> bits_of(std::vector<float> values, const std::string& where) {
  const auto good = [](float value) {
    return value >= 0 && value <= static_cast<float>(kMaxBits) && value == std::floor(value);
  };
  values = checked(std::move(values), good, "bits from 0 to 8", where);
  return {values.begin(), values.end()};
}

/// Checks that bits fill the bytes given in the config, and that all heads have equally many bits.
void check_bits(const TransformLayer& layer, const TransformShape& shape, std::size_t bytes, const std::string& where) {
  if (const std::size_t found = code_bytes(layer, shape); found != bytes)
    throw Error(ErrorCode::kInput, where,
                "found " + std::to_string(found) + " bytes of a token, expected " + std::to_string(bytes) +
                    ", as code_bytes says");
  const auto sum = [&](const RowSet& set, std::size_t row) {
    const auto of_row = std::span(layer.bits).subspan(set.first + row * set.size, set.size);
    return std::reduce(of_row.begin(), of_row.end());
  };
  for (const RowSet& set : row_sets(layer.rows, shape))
    for (std::size_t row = 1; row < set.count; ++row)
      if (sum(set, row) != sum(set, 0))
        throw Error(ErrorCode::kInput, where,
                    "found " + std::to_string(sum(set, 0)) + " and " + std::to_string(sum(set, row)) +
                        " bits, expected as many in every head");
}

/// Returns the shape of analysis and of synthesis.
std::vector<std::uint64_t> products_shape(TransformRows rows, const TransformShape& shape) {
  const std::uint64_t values = 2 * shape.kv_heads * shape.head_dim;
  if (rows == TransformRows::kLayer) return {values, values};
  return {shape.kv_heads, shape.head_dim, shape.head_dim};
}

}  // namespace

Json transform_parameters(const TransformConfig& config) {
  return {{"layers", config.layers},    {"rows", name_of(config.rows)},    {"sinks", config.sinks},
          {"recent", config.recent},    {"code_bytes", config.code_bytes}, {"thresholds", config.thresholds},
          {"outliers", config.outliers}};
}

Json transform_calibration(const TransformConfig& config) {
  Json keys = Json::array(), values = Json::array();
  for (const TransformScales& scales : config.scales) {
    keys.push_back(scales.keys);
    values.push_back(scales.values);
  }
  return {{"budget", {{"window", config.window}, {"bytes", config.bytes}}},
          {"costs", {{"keys", std::move(keys)}, {"values", std::move(values)}}}};
}

TransformConfig read_transform_config(const Json& json, const std::string& where) {
  const JsonCursor root(json, where), parameters = root.at("parameters"), calibration = root.at("calibration");
  TransformConfig config;
  config.layers = config_layers(root);
  config.rows =
      parameters.at("rows").value() == name_of(TransformRows::kHead) ? TransformRows::kHead : TransformRows::kLayer;
  config.sinks = parameters.at("sinks").unsigned_integer(kMaxTransformTokens);
  config.recent = parameters.at("recent").unsigned_integer(kMaxTransformTokens);
  config.code_bytes = parameters.at("code_bytes").value().get<std::vector<std::size_t>>();
  config.thresholds = parameters.at("thresholds").value().get<std::vector<double>>();
  config.outliers = parameters.at("outliers").value().get<double>();
  config.window = calibration.at("budget").at("window").unsigned_integer();
  config.bytes = calibration.at("budget").at("bytes").unsigned_integer();
  const JsonCursor costs = calibration.at("costs");
  for (std::size_t n = 0; n < config.layers.size(); ++n)
    config.scales.push_back({costs.at("keys").value()[n].get<double>(), costs.at("values").value()[n].get<double>()});
  return config;
}

std::size_t code_bytes(const TransformLayer& layer, const TransformShape& shape) {
  std::size_t bytes = 0;
  for (const RowSet& set : row_sets(layer.rows, shape))
    for (std::size_t row = 0; row < set.count; ++row)
      bytes += code_bytes(std::span(layer.bits).subspan(set.first + row * set.size, set.size));
  return bytes;
}

std::size_t shared_bytes(const std::vector<TransformLayer>& layers) {
  std::size_t numbers = layers.empty() ? 0 : layers.front().books.size(), bytes = 0;
  for (const TransformLayer& layer : layers) {
    numbers += layer.mean.size() + layer.analysis.size() + layer.synthesis.size() + layer.deviations.size() +
               layer.weights.size();
    bytes += layer.bits.size();
  }
  return bytes + numbers * sizeof(float);
}

std::vector<OutputTensor> transform_tensors(const std::vector<TransformLayer>& layers,
                                            const std::vector<TransformShape>& shapes) {
  std::vector<OutputTensor> tensors{
      held_tensor("books", {kMaxBits + 1, kTrellisBooks / (kMaxBits + 1)}, layers.front().books)};
  for (std::size_t n = 0; n < layers.size(); ++n) {
    const TransformLayer& layer = layers[n];
    const TransformShape& shape = shapes[n];
    const std::size_t values = layer.values();
    const auto add = [&](const std::string& name, std::vector<std::uint64_t> size, std::vector<float> held) {
      tensors.push_back(held_tensor(tensor_name(layer.layer, name), std::move(size), std::move(held)));
    };
    add("mean", {values}, layer.mean);
    add("analysis", products_shape(layer.rows, shape), layer.analysis);
    add("synthesis", products_shape(layer.rows, shape), layer.synthesis);
    if (layer.rows == TransformRows::kHead) add("deviations", {values / 2}, layer.deviations);
    add("bits", {values}, floats(layer.bits));
    add("weights", {values}, layer.weights);
  }
  return tensors;
}

std::vector<TransformLayer> read_transform_layers(const Json& json, const std::filesystem::path& path) {
  const TransformConfig config = read_transform_config(json, path.string());
  const JsonCursor model = JsonCursor(json, path.string()).at("model");
  const LayerSizes kv_heads = LayerSizes::from_json(model.at("kv_heads")),
                   head_dim = LayerSizes::from_json(model.at("head_dim"));
  const std::filesystem::path file = path.parent_path() / json.at("files").at(0).at("path").get<std::string>();
  const auto archive = open_safetensors(file);
  const FactorReader read = reader_of(*archive, file);
  const std::vector<float> books = read("books", {kMaxBits + 1, kTrellisBooks / (kMaxBits + 1)});
  std::vector<TransformLayer> layers;
  for (std::size_t n = 0; n < config.layers.size(); ++n) {
    const TransformShape shape{kv_heads.of(config.layers[n]), head_dim.of(config.layers[n])};
    const std::size_t values = 2 * shape.kv_heads * shape.head_dim;
    const auto tensor = [&](const std::string& what, const std::vector<std::uint64_t>& size) {
      return read(tensor_name(config.layers[n], what), size);
    };
    const auto where = [&](const std::string& what) {
      return file.string() + ": tensor " + tensor_name(config.layers[n], what);
    };
    const auto deviations = [&] {
      const auto good = [](float value) { return value > 0; };
      return checked(tensor("deviations", {values / 2}), good, "numbers above 0", where("deviations"));
    };
    const auto weights = [&] {
      const auto good = [](float value) { return value >= 0 && value <= 1; };
      return checked(tensor("weights", {values}), good, "numbers from 0 to 1", where("weights"));
    };
    layers.push_back({.layer = config.layers[n],
                      .rows = config.rows,
                      .mean = tensor("mean", {values}),
                      .analysis = tensor("analysis", products_shape(config.rows, shape)),
                      .synthesis = tensor("synthesis", products_shape(config.rows, shape)),
                      .deviations = config.rows == TransformRows::kHead ? deviations() : std::vector<float>(),
                      .bits = bits_of(tensor("bits", {values}), where("bits")),
                      .weights = weights(),
                      .threshold = config.thresholds[n],
                      .outliers = config.outliers,
                      .books = books,
                      .sinks = config.sinks,
                      .recent = config.recent});
    check_bits(layers.back(), shape, config.code_bytes[n], where("bits"));
  }
  return layers;
}

}  // namespace kvs::inline calibrate
