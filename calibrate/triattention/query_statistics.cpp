// SPDX-License-Identifier: Apache-2.0
#include "calibrate/triattention/query_statistics.h"

#include <algorithm>
#include <cmath>

#include "calibrate/config/tensors.h"
#include "core/error.h"
#include "results/head.h"

namespace kvs::inline calibrate {
namespace {

std::string statistic_name(std::size_t layer, const char* what) {
  return "layers." + std::to_string(layer) + ".query_" + what;
}

/// Returns the sizes of a layer as the config records them. @throws Error kInput
QueryStatistics recorded_layer(const ModelRecord& model, std::size_t layer, const JsonCursor& json) {
  QueryStatistics found{
      .layer = layer, .query_heads = model.query_heads.of(layer), .head_dim = model.head_dim.of(layer)};
  if (!model.rope.frequencies.empty())
    found.chunks = model.rope.frequencies.at(model.rope.layer_kinds.at(layer)).size();
  if (2 * found.chunks > found.head_dim || found.query_heads % model.kv_heads.of(layer) != 0)
    json.fail("a layer whose heads hold their RoPE chunks, and whose KV heads divide its query heads");
  return found;
}

}  // namespace

double QueryStatistics::mean_magnitude(std::size_t head, std::size_t band) const {
  const float* const row = mean.data() + head * head_dim;
  return band < chunks ? std::hypot(double{row[band]}, double{row[band + chunks]})
                       : std::abs(double{row[band + chunks]});
}

double QueryStatistics::resultant_length() const {
  double resultant = 0, all = 0;
  for (std::size_t head = 0; head < query_heads; ++head)
    for (std::size_t band = 0; band < bands(); ++band) {
      resultant += mean_magnitude(head, band);
      all += double{magnitude[head * bands() + band]};
    }
  return all > 0 ? resultant / all : 0;
}

std::vector<OutputTensor> statistics_tensors(const std::vector<QueryStatistics>& layers) {
  std::vector<OutputTensor> tensors;
  tensors.reserve(2 * layers.size());
  for (const QueryStatistics& one : layers) {
    tensors.push_back(held_tensor(statistic_name(one.layer, "mean"), {one.query_heads, one.head_dim}, one.mean));
    tensors.push_back(
        held_tensor(statistic_name(one.layer, "magnitude"), {one.query_heads, one.bands()}, one.magnitude));
  }
  return tensors;
}

std::vector<QueryStatistics> read_statistics(const Json& config, const std::filesystem::path& path) {
  const JsonCursor record = JsonCursor(config, path.string()).at("model");
  const auto model = from_json<ModelRecord>(record);
  const std::filesystem::path file = path.parent_path() / config.at("files").at(0).at("path").get<std::string>();
  const auto archive = open_safetensors(file);
  const FactorReader read = reader_of(*archive, file);
  std::vector<QueryStatistics> layers;
  for (std::size_t layer = 0; layer < model.layers; ++layer) {
    if (!model.has_cache(layer)) continue;
    QueryStatistics one = recorded_layer(model, layer, record);
    one.mean = read(statistic_name(layer, "mean"), {one.query_heads, one.head_dim});
    one.magnitude = read(statistic_name(layer, "magnitude"), {one.query_heads, one.bands()});
    if (std::ranges::any_of(one.magnitude, [](float value) { return value < 0; }))
      throw Error(ErrorCode::kInput, file.string() + ": tensor " + statistic_name(layer, "magnitude"),
                  "found a number below 0, expected magnitudes");
    layers.push_back(std::move(one));
  }
  return layers;
}

std::size_t shared_bytes(const std::vector<QueryStatistics>& layers) {
  std::size_t numbers = 0;
  for (const QueryStatistics& one : layers) numbers += one.mean.size() + one.magnitude.size();
  return numbers * sizeof(float);
}

}  // namespace kvs::inline calibrate
