#include "export/transform_config.h"

#include <algorithm>
#include <cmath>

#include "calibrate/transform/bits.h"
#include "core/error.h"
#include "export/config_lists.h"
#include "export/elite_source.h"

namespace kvs {
namespace {

std::string tensor_name(std::size_t layer, const std::string& what) {
  return "layers." + std::to_string(layer) + '.' + what;
}

std::vector<float> floats(std::span<const std::size_t> values) { return {values.begin(), values.end()}; }

/// Whole numbers of at most kMostBits, of as many bytes as the config says.
std::vector<std::size_t> bits_of(const std::vector<float>& values, std::size_t bytes, const std::string& where) {
  std::vector<std::size_t> bits;
  for (const float value : values) {
    if (!(value >= 0 && value <= static_cast<float>(kMostBits)) || value != std::floor(value))
      throw Error(ErrorCode::kInput, where, "found " + std::to_string(value) + ", expected bits from 0 to 8");
    bits.push_back(static_cast<std::size_t>(value));
  }
  if (code_bytes(bits) != bytes)
    throw Error(ErrorCode::kInput, where,
                "found " + std::to_string(code_bytes(bits)) + " bytes of a token, expected " + std::to_string(bytes) +
                    ", as code_bytes says");
  return bits;
}

}  // namespace

Json transform_parameters(const TransformConfig& config) {
  return {{"layers", config.layers},
          {"sinks", config.sinks},
          {"code_bytes", config.code_bytes},
          {"thresholds", config.thresholds},
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
  config.sinks = parameters.at("sinks").unsigned_integer();
  for (const char* const list : {"code_bytes", "thresholds"})
    expect_length(parameters.at(list), config.layers.size(), "layers");
  config.code_bytes = parameters.at("code_bytes").value().get<std::vector<std::size_t>>();
  config.thresholds = parameters.at("thresholds").value().get<std::vector<double>>();
  config.outliers = parameters.at("outliers").value().get<double>();
  config.window = calibration.at("budget").at("window").unsigned_integer();
  config.bytes = calibration.at("budget").at("bytes").unsigned_integer();
  const JsonCursor costs = calibration.at("costs");
  for (const char* const side : {"keys", "values"}) expect_length(costs.at(side), config.layers.size(), "layers");
  for (std::size_t n = 0; n < config.layers.size(); ++n)
    config.scales.push_back({costs.at("keys").value()[n].get<double>(), costs.at("values").value()[n].get<double>()});
  if (root.at("files").array_size() != 1) root.at("files").fail("one file of tensors");
  return config;
}

std::vector<OutputTensor> transform_tensors(const std::vector<TransformLayer>& layers) {
  std::vector<OutputTensor> tensors{
      held_tensor("books", {kMostBits + 1, kTrellisBooks / (kMostBits + 1)}, layers.front().books)};
  for (const TransformLayer& layer : layers) {
    const std::size_t values = layer.values();
    const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape, std::vector<float> held) {
      tensors.push_back(held_tensor(tensor_name(layer.layer, name), std::move(shape), std::move(held)));
    };
    add("mean", {values}, layer.mean);
    add("analysis", {values, values}, layer.analysis);
    add("synthesis", {values, values}, layer.synthesis);
    add("bits", {values}, floats(layer.bits));
    add("weights", {values}, layer.weights);
  }
  return tensors;
}

std::vector<TransformLayer> read_transform_layers(const Json& json, const std::filesystem::path& path) {
  const TransformConfig config = read_transform_config(json, path.string());
  const JsonCursor model = JsonCursor(json, path.string()).at("model");
  const std::size_t values = 2 * model.at("kv_heads").unsigned_integer() * model.at("head_dim").unsigned_integer();
  const std::filesystem::path file = path.parent_path() / json.at("files").at(0).at("path").get<std::string>();
  const auto archive = open_safetensors(file);
  const FactorReader read = reader_of(*archive, file);
  const std::vector<float> books = read("books", {kMostBits + 1, kTrellisBooks / (kMostBits + 1)});
  std::vector<TransformLayer> layers;
  for (std::size_t n = 0; n < config.layers.size(); ++n) {
    const auto tensor = [&](const std::string& what, const std::vector<std::uint64_t>& shape) {
      return read(tensor_name(config.layers[n], what), shape);
    };
    const std::string bits = tensor_name(config.layers[n], "bits");
    layers.push_back(
        {.layer = config.layers[n],
         .mean = tensor("mean", {values}),
         .analysis = tensor("analysis", {values, values}),
         .synthesis = tensor("synthesis", {values, values}),
         .bits = bits_of(tensor("bits", {values}), config.code_bytes[n], file.string() + ": tensor " + bits),
         .weights = tensor("weights", {values}),
         .threshold = static_cast<float>(config.thresholds[n]),
         .outliers = config.outliers,
         .books = books,
         .sinks = config.sinks});
  }
  return layers;
}

}  // namespace kvs
