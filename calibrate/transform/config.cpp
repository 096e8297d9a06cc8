// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/config.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "calibrate/config/config_lists.h"
#include "calibrate/config/tensors.h"
#include "calibrate/transform/bits.h"
#include "calibrate/transform/entropy_model.h"
#include "core/error.h"
#include "io/layer_sizes.h"

namespace kvs::inline calibrate {
namespace {

std::string tensor_name(std::size_t layer, const std::string& what) {
  return "layers." + std::to_string(layer) + '.' + what;
}

std::vector<float> floats(std::span<const std::size_t> values) { return {values.begin(), values.end()}; }

/// Returns the type of a layer's analysis, synthesis and prediction in the file.
DType map_type(const TransformLayer& layer) {
  return layer.form() == TransformForm::kStorage ? DType::kF16 : DType::kF32;
}

std::string_view name_of(TransformRows rows) { return kTransformRowNames[static_cast<std::size_t>(rows)]; }

/// Returns the values. @throws Error kInput for the first value that is not `good`
std::vector<float> checked(std::vector<float> values, const std::function<bool(float)>& good,
                           const std::string& expected, const std::string& where) {
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

/// Returns the rows of the coefficients that a layer or a group keeps.
std::vector<RowSet> row_sets_of(const TransformLayer& layer, const TransformShape& shape) {
  if (layer.others.empty()) return row_sets(layer.rows, shape);
  return {{0, 1, layer.bits.size()}};
}

/// Returns whole numbers. @throws Error kInput for another value, or one above `most`
std::vector<float> whole_numbers(std::vector<float> values, float most, const std::string& where) {
  const auto good = [&](float value) { return value >= 0 && value <= most && value == std::floor(value); };
  return checked(std::move(values), good, "whole numbers up to " + std::to_string(std::lround(most)), where);
}

constexpr std::string_view kFrequencies = "frequencies", kExpected = "expected", kValues = "values";

/// Reads the tables of the storage form. @throws Error kInput naming the tensor
std::shared_ptr<const EntropyModel> read_entropy(const TensorArchive& archive, const std::filesystem::path& file) {
  const FactorReader read = reader_of(archive, file);
  const auto tensor = [&](std::string_view name, const std::vector<std::uint64_t>& shape, float most) {
    std::string where = file.string() + ": tensor ";
    return whole_numbers(read(std::string(name), shape), most, where += name);
  };
  constexpr std::uint32_t kMostExpected = 1U << 24;
  const std::vector<float> frequencies =
      tensor(kFrequencies, {kScaleClasses, kRatioClasses, kPastClasses, kQuantisers, kLevels}, kFrequencySum);
  for (std::size_t at = 0; at < frequencies.size(); at += kLevels) {
    const auto of_context = std::span(frequencies).subspan(at, kLevels);
    if (std::ranges::min(of_context) < 1 || std::reduce(of_context.begin(), of_context.end()) != kFrequencySum)
      throw Error(ErrorCode::kInput, file.string() + ": tensor " + std::string(kFrequencies),
                  "found frequencies of context " + std::to_string(at / kLevels) +
                      " that are 0 or have another sum, "
                      "expected at least 1 each and the sum " +
                      std::to_string(kFrequencySum));
  }
  const std::vector<float> expected = tensor(kExpected, {kScaleClasses}, kMostExpected);
  std::vector<float> values = checked(
      read(std::string(kValues), {kScaleClasses, kQuantisers, kLevels}),
      [](float value) { return value >= 0 && value <= kMostValue; }, "magnitudes of levels in steps",
      file.string() + ": tensor " + std::string(kValues));
  return std::make_shared<const EntropyModel>(
      EntropyModel{{frequencies.begin(), frequencies.end()}, {expected.begin(), expected.end()}, std::move(values)});
}

std::vector<OutputTensor> entropy_tensors(const EntropyModel& model) {
  return {held_tensor(std::string(kFrequencies), {kScaleClasses, kRatioClasses, kPastClasses, kQuantisers, kLevels},
                      {model.frequencies.begin(), model.frequencies.end()}),
          held_tensor(std::string(kExpected), {kScaleClasses}, {model.expected.begin(), model.expected.end()}),
          held_tensor(std::string(kValues), {kScaleClasses, kQuantisers, kLevels}, model.values)};
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
  for (const RowSet& set : row_sets_of(layer, shape))
    for (std::size_t row = 1; row < set.count; ++row)
      if (sum(set, row) != sum(set, 0))
        throw Error(ErrorCode::kInput, where,
                    "found " + std::to_string(sum(set, 0)) + " and " + std::to_string(sum(set, row)) +
                        " bits, expected as many in every head");
}

/// The shapes of a layer's, or of a group's, tensors.
struct TensorShapes {
  TensorShapes(TransformRows rows, const TransformShape& shape, std::uint64_t all, std::uint64_t kept)
      : values{all}, coefficients{kept}, analysis{kept, all} {
    if (rows == TransformRows::kHead) analysis = {shape.kv_heads, shape.head_dim, shape.head_dim};
    synthesis = analysis;
    if (rows == TransformRows::kLayer) std::ranges::reverse(synthesis);
  }
  std::vector<std::uint64_t> values, coefficients, analysis, synthesis;
};

/// Returns the number of layers of each group. @throws Error kInput unless they are neighbours that can share a row
std::vector<std::size_t> groups_of(const JsonCursor& root, const TransformConfig& config) {
  const JsonCursor parameters = root.at("parameters");
  if (!parameters.value().contains("groups")) return std::vector<std::size_t>(config.layers.size(), 1);
  const JsonCursor groups = parameters.at("groups");
  const auto kv_heads = LayerSizes::from_json(root.at("model").at("kv_heads")),
             head_dim = LayerSizes::from_json(root.at("model").at("head_dim"));
  std::vector<std::size_t> counts;
  std::size_t first = 0;
  for (std::size_t n = 0; n < groups.array_size(); ++n) {
    const std::size_t count = groups.at(n).unsigned_integer(config.layers.size() - first);
    counts.push_back(count);
    for (std::size_t layer = first; layer < first + count; ++layer)
      if (kv_heads.of(config.layers[layer]) != kv_heads.of(config.layers[first]) ||
          head_dim.of(config.layers[layer]) != head_dim.of(config.layers[first]))
        groups.at(n).fail("layers with equal heads");
    first += count;
  }
  if (first != config.layers.size()) groups.fail("groups of " + std::to_string(config.layers.size()) + " layers");
  const bool shares = std::ranges::any_of(counts, [](std::size_t count) { return count > 1; });
  if (shares && config.rows == TransformRows::kHead) groups.fail("no groups with rows by head");
  if (shares && config.recent == 0) groups.fail("no groups without recent tokens");
  return counts;
}

/// Rows can be predicted if layer 0 has the tokens' embeddings and tokens wait. @throws Error kInput
void check_prediction(const JsonCursor& root, const TransformConfig& config) {
  const JsonCursor predict = root.at("parameters").at("predict");
  if (config.layers.front() != 0) predict.fail("no prediction without layer 0");
  if (config.rows == TransformRows::kHead) predict.fail("no prediction with rows by head");
  if (config.recent == 0) predict.fail("no prediction without recent tokens");
}

/// The storage form codes whole tokens, in blocks of waiting ones. @throws Error kInput
void check_storage(const JsonCursor& root, const TransformConfig& config) {
  const JsonCursor form = root.at("parameters").at("form");
  if (config.rows == TransformRows::kHead) form.fail("no storage form with rows by head");
  if (config.recent == 0) form.fail("no storage form without recent tokens");
  if (config.outliers > 0) form.fail("no storage form with outliers");
}

/// Returns the number of coefficients: all of a layer, or as many as the file has of a group or in the storage form.
std::size_t coefficients_of(const TensorArchive& archive, const TransformLayer& layer, std::size_t values) {
  if (layer.others.empty() && layer.form() == TransformForm::kRandomAccess) return values;
  const bool stored = layer.form() == TransformForm::kStorage;
  const StoredTensor* const bits = archive.find(tensor_name(layer.layer, stored ? "scales" : "bits"));
  const bool fits =
      bits != nullptr && bits->shape.size() == 1 && bits->shape.front() > 0 && bits->shape.front() <= values;
  return fits ? bits->shape.front() : values;
}

/// Returns the channels of the embeddings that rows are predicted from. @throws Error kInput
std::size_t inputs_of(const TensorArchive& archive, const TransformConfig& config, const std::filesystem::path& file) {
  const std::string name = tensor_name(config.layers.front(), "prediction");
  const StoredTensor* const found = archive.find(name);
  if (found == nullptr || found->shape.size() != 2 || found->shape.back() == 0)
    throw Error(ErrorCode::kInput, file.string() + ": tensor " + name, "found no matrix, expected [values, channels]");
  return found->shape.back();
}

/// Reads the tensors of a layer or of a group. @throws Error kInput naming the tensor
void read_tensors(const TensorArchive& archive, const std::filesystem::path& file, const TransformShape& shape,
                  std::size_t inputs, TransformLayer& layer) {
  const FactorReader read = reader_of(archive, file);
  const std::size_t values = layer.layers() * 2 * shape.kv_heads * shape.head_dim;
  const TensorShapes sizes(layer.rows, shape, values, coefficients_of(archive, layer, values));
  const auto tensor = [&](const std::string& what, const std::vector<std::uint64_t>& size) {
    return read(tensor_name(layer.layer, what), size);
  };
  const auto where = [&](const std::string& what) {
    return file.string() + ": tensor " + tensor_name(layer.layer, what);
  };
  layer.mean = tensor("mean", sizes.values);
  layer.analysis = tensor("analysis", sizes.analysis);
  layer.synthesis = tensor("synthesis", sizes.synthesis);
  if (layer.rows == TransformRows::kHead)
    layer.deviations = checked(
        tensor("deviations", {values / 2}), [](float value) { return value > 0; }, "numbers above 0",
        where("deviations"));
  if (inputs > 0) layer.prediction = tensor("prediction", {values, inputs});
  if (layer.form() == TransformForm::kStorage) {
    const auto scales = whole_numbers(tensor("scales", sizes.coefficients), kScaleClasses - 1, where("scales"));
    layer.scales.assign(scales.begin(), scales.end());
    layer.weights.assign(layer.scales.size(), 1);
    return;
  }
  layer.bits = bits_of(tensor("bits", sizes.coefficients), where("bits"));
  layer.weights = checked(
      tensor("weights", sizes.coefficients), [](float value) { return value >= 0 && value <= 1; },
      "numbers from 0 to 1", where("weights"));
}

}  // namespace

Json transform_parameters(const TransformConfig& config) {
  Json parameters{{"layers", config.layers},    {"rows", name_of(config.rows)},    {"sinks", config.sinks},
                  {"recent", config.recent},    {"code_bytes", config.code_bytes}, {"thresholds", config.thresholds},
                  {"outliers", config.outliers}};
  if (std::ranges::any_of(config.groups, [](std::size_t count) { return count > 1; }))
    parameters["groups"] = config.groups;
  if (config.predicts) parameters["predict"] = "embedding";
  if (config.form == TransformForm::kStorage)
    parameters["form"] = kTransformFormNames[static_cast<std::size_t>(config.form)];
  return parameters;
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
  config.groups = groups_of(root, config);
  config.predicts = parameters.value().contains("predict");
  if (config.predicts) check_prediction(root, config);
  if (parameters.value().contains("form")) {
    config.form = TransformForm::kStorage;
    check_storage(root, config);
  }
  config.window = calibration.at("budget").at("window").unsigned_integer();
  config.bytes = calibration.at("budget").at("bytes").unsigned_integer();
  const JsonCursor costs = calibration.at("costs");
  for (std::size_t n = 0; n < config.layers.size(); ++n)
    config.scales.push_back({costs.at("keys").value()[n].get<double>(), costs.at("values").value()[n].get<double>()});
  return config;
}

std::size_t code_bytes(const TransformLayer& layer, const TransformShape& shape) {
  std::size_t bytes = 0;
  for (const RowSet& set : row_sets_of(layer, shape))
    for (std::size_t row = 0; row < set.count; ++row)
      bytes += code_bytes(std::span(layer.bits).subspan(set.first + row * set.size, set.size));
  return bytes;
}

std::size_t shared_bytes(const std::vector<TransformLayer>& layers) {
  std::size_t floats = layers.empty() ? 0 : layers.front().books.size(), bytes = 0;
  for (const TransformLayer& layer : layers) {
    const std::size_t maps = layer.prediction.size() + layer.analysis.size() + layer.synthesis.size();
    bytes += maps * item_size(map_type(layer)) + layer.bits.size() + layer.scales.size();
    floats += layer.mean.size() + layer.deviations.size() + (layer.entropy == nullptr ? layer.weights.size() : 0);
  }
  if (!layers.empty() && layers.front().entropy != nullptr) {
    const EntropyModel& model = *layers.front().entropy;
    floats += model.values.size() + model.expected.size();
    bytes += model.frequencies.size() * sizeof(std::uint16_t);
  }
  return bytes + floats * sizeof(float);
}

std::vector<OutputTensor> transform_tensors(const std::vector<TransformLayer>& layers,
                                            const std::vector<TransformShape>& shapes) {
  const std::shared_ptr<const EntropyModel>& entropy = layers.front().entropy;
  std::vector<OutputTensor> tensors;
  if (entropy != nullptr)
    tensors = entropy_tensors(*entropy);
  else
    tensors.push_back(held_tensor("books", {kMaxBits + 1, kTrellisBooks / (kMaxBits + 1)}, layers.front().books));
  for (std::size_t n = 0; n < layers.size(); ++n) {
    const TransformLayer& layer = layers[n];
    const TensorShapes sizes(layer.rows, shapes[n], layer.values(), layer.coefficients());
    const auto add = [&](const std::string& name, std::vector<std::uint64_t> size, std::vector<float> held,
                         DType type = DType::kF32) {
      tensors.push_back(held_tensor(tensor_name(layer.layer, name), std::move(size), std::move(held), type));
    };
    add("mean", sizes.values, layer.mean);
    add("analysis", sizes.analysis, layer.analysis, map_type(layer));
    add("synthesis", sizes.synthesis, layer.synthesis, map_type(layer));
    if (layer.rows == TransformRows::kHead) add("deviations", {layer.values() / 2}, layer.deviations);
    if (!layer.prediction.empty())
      add("prediction", {layer.values(), layer.prediction.size() / layer.values()}, layer.prediction, map_type(layer));
    if (entropy != nullptr) {
      add("scales", sizes.coefficients, {layer.scales.begin(), layer.scales.end()});
      continue;
    }
    add("bits", sizes.coefficients, floats(layer.bits));
    add("weights", sizes.coefficients, layer.weights);
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
  std::shared_ptr<const EntropyModel> entropy;
  std::vector<float> books;
  if (config.form == TransformForm::kStorage)
    entropy = read_entropy(*archive, file);
  else
    books = reader_of(*archive, file)("books", {kMaxBits + 1, kTrellisBooks / (kMaxBits + 1)});
  const std::size_t inputs = config.predicts ? inputs_of(*archive, config, file) : 0;
  std::vector<TransformLayer> layers;
  for (std::size_t first = 0; const std::size_t count : config.groups) {
    const auto at = config.layers.begin() + static_cast<std::ptrdiff_t>(first);
    const TransformShape shape{kv_heads.of(*at), head_dim.of(*at)};
    TransformLayer layer{.layer = *at,
                         .rows = config.rows,
                         .mean = {},
                         .analysis = {},
                         .synthesis = {},
                         .bits = {},
                         .weights = {},
                         .threshold = config.thresholds[first],
                         .outliers = config.outliers,
                         .books = books,
                         .sinks = config.sinks,
                         .recent = config.recent,
                         .others = {at + 1, at + static_cast<std::ptrdiff_t>(count)},
                         .entropy = entropy};
    read_tensors(*archive, file, shape, inputs, layer);
    if (entropy == nullptr)
      check_bits(layer, shape, config.code_bytes[first],
                 file.string() + ": tensor " + tensor_name(layer.layer, "bits"));
    layers.push_back(std::move(layer));
    first += count;
  }
  return layers;
}

}  // namespace kvs::inline calibrate
