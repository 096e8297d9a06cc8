// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "caches/parameters.h"
#include "calibrate/config/config.h"
#include "calibrate/config/config_lists.h"
#include "core/error.h"
#include "io/finite.h"
#include "results/mean_loss.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::array<std::string_view, 3> kSplits{"up", "down", "sqrt"};     // as SingularSplit
constexpr std::array<std::string_view, 3> kWhitenings{"off", "on", "both"};  // as Whitening

constexpr std::string_view factorization(bool joint) { return joint ? "joint" : "separate"; }

std::vector<std::vector<ElitePicks>> read_picks(const JsonCursor& root) {
  const Json &elite = root.at("parameters").at("elite").value(),
             &error = root.at("calibration").at("ropelite").at("error").value();
  std::vector<std::vector<ElitePicks>> picks(elite.size());
  for (std::size_t n = 0; n < elite.size(); ++n)
    for (std::size_t h = 0; h < elite[n].size(); ++h)
      picks[n].push_back({elite[n][h].get<std::vector<std::size_t>>(), error.at(n).at(h).get<std::vector<double>>()});
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

/// Returns the value of a word of the schema.
template <class Enum>
Enum word_of(std::span<const std::string_view> words, const JsonCursor& word) {
  return static_cast<Enum>(std::ranges::find(words, word.string()) - words.begin());
}

/// Reads a parameter with one value for all layers or a list by layer.
std::vector<std::size_t> of_layers(const JsonCursor& value, std::size_t layers) {
  if (!value.value().is_array()) return std::vector(layers, value.unsigned_integer());
  return value.value().get<std::vector<std::size_t>>();
}

/// Reads r, d_ckv and their lists by layer.
void read_sizes(const JsonCursor& root, EliteConfig& config) {
  const JsonCursor parameters = root.at("parameters"), r = parameters.at("r"), d_ckv = parameters.at("d_ckv");
  const bool factors = root.at("files").array_size() > 0;
  const std::size_t layers = config.layers.size();
  const std::vector<std::size_t> rs = of_layers(r, layers),
                                 ranks = factors ? of_layers(d_ckv, layers) : std::vector<std::size_t>(layers);
  for (std::size_t n = 0; n < layers; ++n) config.by_layer.push_back({rs[n], ranks[n]});
  config.r = *std::ranges::max_element(rs);
  if (factors) config.rank = *std::ranges::max_element(ranks);
  if (!r.value().is_array() && !d_ckv.value().is_array()) config.by_layer.clear();
}

/// Reads the config's members on factors.
void read_factors(const JsonCursor& root, EliteConfig& config) {
  const JsonCursor parameters = root.at("parameters"), singular = root.at("calibration").at("singular_values");
  config.joint = parameters.at("factorization").string() == "joint";
  config.whitening = word_of<Whitening>(kWhitenings, parameters.at("whiten"));
  config.fitted_queries = parameters.has("queries");
  config.fitted_outputs = parameters.has("outputs");
  config.split = word_of<SingularSplit>(kSplits, parameters.at("split"));
  config.singular_values = read_singular_values(singular);
  if (config.rank && !config.joint)
    config.ranks = parameters.at("ranks").value().get<std::vector<std::pair<std::size_t, std::size_t>>>();
}

/// Returns a measured mean NLL, or the reason why there is none.
Json loss_json(double nll, double error) {
  if (!std::isfinite(nll))
    return {{"ppl", nullptr}, {"nll_mean", nullptr}, {"error", "found NaN or infinity, expected finite activations"}};
  return to_json(MeanLoss::of(nll, error));
}

/// Reads an NLL. Older versions wrote only the perplexity.
double trial_nll(const JsonCursor& trial, const char* nll, const char* ppl) {
  return trial.has(nll) ? trial.at(nll).real() : std::log(trial.at(ppl).positive());
}

EliteTrial read_trial(const JsonCursor& trial) {
  constexpr std::uint64_t kMost = 1ULL << 50;
  EliteTrial result{.r = trial.at("r").unsigned_integer(kMost),
                    .d_ckv = trial.at("d_ckv").unsigned_integer(kMost),
                    .joint = trial.at("factorization").string() == "joint",
                    .parameters = trial.at("parameters").unsigned_integer(kMost),
                    .nll = std::numeric_limits<double>::infinity(),
                    .nll_full = trial_nll(trial, "nll_full", "ppl_full")};
  if (!trial.has("error")) result.nll = trial_nll(trial, "nll_mean", "ppl");
  if (trial.has("nll_error")) result.nll_error = trial.at("nll_error").real();
  return result;
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

const EliteTrial& best_trial(const EliteConfig& config) {
  const auto best = std::ranges::min_element(config.trials, {}, &EliteTrial::nll);
  if (best == config.trials.end() || !best->is_finite())
    throw Error(ErrorCode::kData, "elitekv",
                "found NaN or infinity with every pair of r and d_ckv, expected finite activations with one of them");
  return *best;
}

std::string trials_verdict(const EliteConfig& config) {
  const EliteTrial& best = best_trial(config);
  const auto named = [](const EliteTrial& trial) {
    return std::string(trial.joint ? "J-LRD" : "S-LRD") + ", r " + std::to_string(trial.r) + ", d_ckv " +
           std::to_string(trial.d_ckv);
  };
  std::string alike;
  for (const EliteTrial& other : config.trials) {
    if (&other == &best || !other.is_finite()) continue;
    const PairedDifference difference = paired_difference(best.losses, other.losses);
    if (difference.interval && difference.interval->second < 0) continue;
    alike += (alike.empty() ? "" : "; ") + named(other) + ": " + difference_text(difference);
  }
  return named(best) + " chosen" +
         (alike.empty() ? ", better than every other" : ": least perplexity, not distinguishable from " + alike);
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
  for (const EliteTrial& trial : config.trials) {
    Json& entry = calibration["trials"].emplace_back(Json{{"r", trial.r},
                                                          {"d_ckv", trial.d_ckv},
                                                          {"factorization", factorization(trial.joint)},
                                                          {"parameters", trial.parameters},
                                                          {"ppl_full", json_of(if_finite(std::exp(trial.nll_full)))},
                                                          {"nll_full", trial.nll_full}});
    entry.update(loss_json(trial.nll, trial.nll_error));
  }
  if (!config.trials.empty()) calibration["verdict"] = trials_verdict(config);
  if (const auto& gqa = config.gqa) {
    calibration["gqa"] = {{"heads", gqa->heads}};
    calibration["gqa"].update(loss_json(gqa->nll, gqa->nll_error));
  }
  if (const auto& allocation = config.allocation) {
    calibration["by_layer"] = {{"winner", allocation->layers_won ? "layers" : "uniform"},
                               {"measured", allocation->measured}};
    calibration["by_layer"].update(difference_json(allocation->difference));
  }
  return calibration;
}

EliteConfig read_elite_config(const Json& config, const std::string& where) {
  const JsonCursor root(config, where), ropelite = root.at("calibration").at("ropelite");
  EliteConfig result;
  result.layers = config_layers(root);
  read_sizes(root, result);
  result.norm = static_cast<int>(ropelite.at("norm").integer());
  if (ropelite.at("granularity").string() == "query-head") result.granularity = Granularity::kQueryHead;
  result.by_attention = ropelite.has("pairs") && ropelite.at("pairs").string() == "attention";
  if (ropelite.has("method")) result.search = ropelite.at("method").string();
  result.picks = read_picks(root);
  read_factors(root, result);
  return result;
}

std::vector<EliteTrial> read_elite_trials(const Json& config, const std::string& where) {
  const JsonCursor calibration = JsonCursor(config, where).at("calibration");
  std::vector<EliteTrial> trials;
  if (!calibration.has("trials")) return trials;
  const JsonCursor list = calibration.at("trials");
  for (std::size_t n = 0; n < list.array_size(); ++n) trials.push_back(read_trial(list.at(n)));
  return trials;
}

Json elite_row_parameters(const Json& config) {
  Json given = Json::object();
  for (const char* const name : {"layers", "type"})
    if (const auto found = config.at("parameters").find(name); found != config.at("parameters").end())
      given[name] = *found;
  return given;
}

std::vector<KvTypes> read_elite_stores(Parameters& parameters) {
  std::vector<KvTypes> stores(parameters.layers());
  for (std::size_t layer = 0; layer < stores.size(); ++layer)
    if (parameters.select(layer)) stores[layer] = read_row_types(parameters, layer);
  parameters.check_known();
  return stores;
}

}  // namespace kvs::inline calibrate
