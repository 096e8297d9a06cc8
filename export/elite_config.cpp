#include "export/elite_config.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "export/config.h"
#include "export/config_lists.h"
#include "io/tensor_archive.h"

namespace kvs {
namespace {

constexpr std::array<std::string_view, 3> kSplits{"up", "down", "sqrt"};     // as SingularSplit
constexpr std::array<std::string_view, 3> kWhitenings{"off", "on", "both"};  // as Whitening

constexpr std::string_view factorization(bool joint) { return joint ? "joint" : "separate"; }

/// The chunk ↔ frequency map: of every kind of RoPE a frequency per chunk, of every layer a kind.
void check_rope(const JsonCursor& model) {
  const JsonCursor rope = model.at("rope"), frequencies = rope.at("frequencies"), layers = rope.at("layer_kinds");
  const auto rotary_dim = rope.at("rotary_dim").unsigned_integer(model.at("head_dim").unsigned_integer());
  const std::size_t kinds = rope.has("kinds") ? rope.at("kinds").array_size() : 1;
  expect_length(frequencies, kinds, "kinds");
  expect_length(rope.at("factors"), kinds, "kinds");
  for (std::size_t kind = 0; kind < kinds; ++kind) expect_length(frequencies.at(kind), rotary_dim / 2, "chunks");
  expect_length(layers, model.at("layers").unsigned_integer(), "layers");
  for (std::size_t n = 0; n < layers.array_size(); ++n)
    if (layers.at(n).unsigned_integer() >= kinds) layers.at(n).fail("a kind below " + std::to_string(kinds));
}

std::vector<std::vector<ElitePicks>> read_picks(const JsonCursor& root, std::size_t layers, std::size_t heads,
                                                const EliteConfig& config) {
  const JsonCursor elite = root.at("parameters").at("elite"), error = root.at("calibration").at("ropelite").at("error");
  const std::size_t chunks = root.at("model").at("rope").at("rotary_dim").unsigned_integer() / 2;
  expect_length(error, layers, "layers");
  expect_length(elite, layers, "layers");
  std::vector<std::vector<ElitePicks>> picks(layers);
  for (std::size_t n = 0; n < layers; ++n) {
    expect_length(elite.at(n), heads, "heads");
    expect_length(error.at(n), heads, "heads");
    const std::size_t r = config.size_of(n).r;
    for (std::size_t h = 0; h < heads; ++h) {
      check_index_list(elite.at(n).at(h), chunks, r);
      expect_length(error.at(n).at(h), r, "picks");
      picks[n].push_back({elite.at(n).at(h).value().get<std::vector<std::size_t>>(),
                          error.at(n).at(h).value().get<std::vector<double>>()});
    }
  }
  return picks;
}

std::vector<EliteSingularValues> read_singular_values(const JsonCursor& list) {
  std::vector<EliteSingularValues> layers;
  for (const Json& layer : list.value()) {
    EliteSingularValues& values = layers.emplace_back();
    if (layer.is_array()) {
      values.joint = layer.get<std::vector<double>>();
    } else {
      values.k = layer.at("k").get<std::vector<double>>();
      values.v = layer.at("v").get<std::vector<double>>();
    }
  }
  return layers;
}

/// The value that a word, one of the schema's, stands for.
template <class Enum>
Enum word_of(std::span<const std::string_view> words, const JsonCursor& word) {
  return static_cast<Enum>(std::ranges::find(words, word.string()) - words.begin());
}

/// A parameter that all layers share or that has a list by layer.
std::vector<std::size_t> of_layers(const JsonCursor& value, std::size_t layers) {
  if (!value.value().is_array()) return std::vector(layers, value.unsigned_integer());
  expect_length(value, layers, "layers");
  return value.value().get<std::vector<std::size_t>>();
}

/// r, d_ckv and their lists by layer.
void read_sizes(const JsonCursor& root, EliteConfig& config) {
  const JsonCursor parameters = root.at("parameters"), r = parameters.at("r"), d_ckv = parameters.at("d_ckv");
  const bool factors = root.at("files").array_size() > 0;
  const std::size_t layers = config.layers.size(),
                    chunks = root.at("model").at("rope").at("rotary_dim").unsigned_integer() / 2;
  const std::vector<std::size_t> rs = of_layers(r, layers),
                                 ranks = factors ? of_layers(d_ckv, layers) : std::vector<std::size_t>(layers);
  for (std::size_t n = 0; n < layers; ++n) {
    if (rs[n] > chunks) (r.value().is_array() ? r.at(n) : r).fail("at most " + std::to_string(chunks));
    config.by_layer.push_back({rs[n], ranks[n]});
  }
  config.r = *std::ranges::max_element(rs);
  if (factors) config.rank = *std::ranges::max_element(ranks);
  if (!r.value().is_array() && !d_ckv.value().is_array()) config.by_layer.clear();
}

/// What the config says of factors.
void read_factors(const JsonCursor& root, EliteConfig& config) {
  const JsonCursor parameters = root.at("parameters"), singular = root.at("calibration").at("singular_values");
  config.joint = parameters.at("factorization").string() == "joint";
  config.whitening = word_of<Whitening>(kWhitenings, parameters.at("whiten"));
  config.fitted_queries = parameters.has("queries");
  config.fitted_outputs = parameters.has("outputs");
  config.split = word_of<SingularSplit>(kSplits, parameters.at("split"));
  const bool factors = config.rank.has_value();
  if (factors) expect_length(singular, config.layers.size(), "layers");
  if (factors != (singular.array_size() > 0)) root.at("files").fail("a file of factors beside singular_values");
  config.singular_values = read_singular_values(singular);
  if (!factors) return;
  if (config.joint) return;
  const JsonCursor ranks = parameters.at("ranks");
  expect_length(ranks, config.layers.size(), "layers");
  for (std::size_t n = 0; n < config.layers.size(); ++n) {
    config.ranks.emplace_back(ranks.at(n).at(0).unsigned_integer(), ranks.at(n).at(1).unsigned_integer());
    const std::size_t d_ckv = config.size_of(n).d_ckv;
    if (config.ranks[n].first + config.ranks[n].second != d_ckv)
      ranks.at(n).fail("two ranks that add to d_ckv, " + std::to_string(d_ckv));
  }
}

}  // namespace

std::vector<EliteFactor> elite_factors(const EliteConfig& config, std::size_t n, std::size_t kv_heads,
                                       std::size_t head_dim) {
  const std::string prefix = "layers." + std::to_string(config.layers[n]) + '.';
  const std::size_t values = kv_heads * head_dim, keys = values - 2 * kv_heads * config.size_of(n).r;
  if (config.joint) return {{prefix + "up", prefix + "down", keys + values, config.size_of(n).d_ckv}};
  return {{prefix + "up_k", prefix + "down_k", keys, config.ranks[n].first},
          {prefix + "up_v", prefix + "down_v", values, config.ranks[n].second}};
}

EliteQueries elite_queries(std::size_t layer) {
  const std::string name = "layers." + std::to_string(layer) + ".query";
  return {name, name + "_bias"};
}

std::string elite_output(std::size_t layer) { return "layers." + std::to_string(layer) + ".output"; }

Json elite_parameters(const EliteConfig& config) {
  Json elite = Json::array(), r = config.r, d_ckv = config.rank ? Json(*config.rank) : Json();
  if (!config.by_layer.empty()) {
    r = Json::array();
    if (config.rank) d_ckv = Json::array();
    for (const EliteAllocation& size : config.by_layer) {
      r.push_back(size.r);
      if (config.rank) d_ckv.push_back(size.d_ckv);
    }
  }
  for (const auto& heads : config.picks) {
    Json& layer = elite.emplace_back(Json::array());
    for (const ElitePicks& head : heads) layer.push_back(head.chunks);
  }
  Json parameters{{"layers", config.layers},
                  {"r", std::move(r)},
                  {"d_ckv", std::move(d_ckv)},
                  {"elite", std::move(elite)},
                  {"factorization", factorization(config.joint)},
                  {"whiten", kWhitenings[static_cast<std::size_t>(config.whitening)]},
                  {"split", kSplits[static_cast<std::size_t>(config.split)]}};
  if (config.fitted_queries) parameters["queries"] = "fitted";
  if (config.fitted_outputs) parameters["outputs"] = "fitted";
  if (!config.ranks.empty()) parameters["ranks"] = config.ranks;
  return parameters;
}

Json elite_calibration(const EliteConfig& config) {
  Json error = Json::array(), singular = Json::array();
  for (const auto& heads : config.picks) {
    Json& layer = error.emplace_back(Json::array());
    for (const ElitePicks& head : heads) layer.push_back(head.errors);
  }
  for (const EliteSingularValues& values : config.singular_values)
    singular.push_back(config.joint ? Json(values.joint) : Json{{"k", values.k}, {"v", values.v}});
  Json calibration{{"ropelite",
                    {{"norm", config.norm},
                     {"granularity", config.granularity == Granularity::kKvHead ? "kv-head" : "query-head"},
                     {"layers", config.layers},
                     {"method", config.search},
                     {"pairs", config.by_attention ? "attention" : "uniform"},
                     {"error", std::move(error)}}},
                   {"singular_values", std::move(singular)}};
  for (const EliteTrial& trial : config.trials)
    calibration["trials"].push_back({{"r", trial.r},
                                     {"d_ckv", trial.d_ckv},
                                     {"factorization", factorization(trial.joint)},
                                     {"parameters", trial.parameters},
                                     {"ppl", trial.ppl},
                                     {"ppl_full", trial.ppl_full}});
  if (config.gqa) calibration["gqa"] = {{"heads", config.gqa->heads}, {"ppl", config.gqa->ppl}};
  if (const auto& allocation = config.allocation) {
    calibration["by_layer"] = {{"winner", allocation->layers_won ? "layers" : "uniform"},
                               {"measured", allocation->measured}};
    calibration["by_layer"].update(difference_json(allocation->difference));
  }
  return calibration;
}

EliteConfig read_elite_config(const Json& config, const std::string& where) {
  const JsonCursor root(config, where), parameters = root.at("parameters"), model = root.at("model"),
                                        ropelite = root.at("calibration").at("ropelite");
  check_rope(model);
  EliteConfig result;
  result.layers = config_layers(root);
  read_sizes(root, result);
  result.norm = static_cast<int>(ropelite.at("norm").integer());
  if (ropelite.at("granularity").string() == "query-head") result.granularity = Granularity::kQueryHead;
  result.by_attention = ropelite.has("pairs") && ropelite.at("pairs").string() == "attention";
  if (ropelite.has("method")) result.search = ropelite.at("method").string();
  if (ropelite.at("layers").value() != parameters.at("layers").value())
    ropelite.at("layers").fail("the layers of /parameters/layers");
  const bool per_kv_head = result.granularity == Granularity::kKvHead;
  const std::size_t heads = model.at(per_kv_head ? "kv_heads" : "query_heads").unsigned_integer();
  result.picks = read_picks(root, result.layers.size(), heads, result);
  read_factors(root, result);
  return result;
}

void check_elite_factors(const Json& json, const std::filesystem::path& path) {
  const EliteConfig config = read_elite_config(json, path.string());
  if (!config.rank) return;
  const Json& model = json.at("model");
  const std::filesystem::path file = path.parent_path() / json.at("files").at(0).at("path").get<std::string>();
  const auto archive = open_safetensors(file);
  const auto expect = [&](const std::string& name, std::size_t axis, std::uint64_t extent) {
    const StoredTensor* tensor = archive->find(name);
    if (tensor == nullptr || tensor->shape.size() != 2 || tensor->shape[axis] != extent)
      throw Error(ErrorCode::kInput, file.string() + ": tensor " + name,
                  "found " + (tensor == nullptr ? "none" : Json(tensor->shape).dump()) + ", expected " +
                      (axis == 0 ? "rows" : "columns") + ": " + std::to_string(extent));
  };
  for (std::size_t n = 0; n < config.layers.size(); ++n) {
    for (const EliteFactor& factor :
         elite_factors(config, n, model.at("kv_heads").get<std::size_t>(), model.at("head_dim").get<std::size_t>())) {
      expect(factor.up, 0, factor.rows);
      expect(factor.up, 1, factor.rank);
      expect(factor.down, 0, factor.rank);
    }
    const auto queries = model.at("query_heads").get<std::uint64_t>() * model.at("head_dim").get<std::uint64_t>();
    if (config.fitted_queries) expect(elite_queries(config.layers[n]).weight, 0, queries);
    if (!config.fitted_outputs) continue;
    expect(elite_output(config.layers[n]), 0, queries);
    expect(elite_output(config.layers[n]), 1, queries);
  }
}

}  // namespace kvs
