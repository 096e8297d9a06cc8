// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/options.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "caches/kv_types.h"
#include "calibrate/common/engine_pairs.h"
#include "calibrate/compare/calibration.h"
#include "calibrate/registry.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/nearest.h"
#include "run/outputs.h"

namespace kvs::inline compare {
namespace {

constexpr std::int64_t kMaxDecoded = 1 << 20;

/// Returns a list of storage types, each KIND or KIND/KIND.
std::vector<std::string> type_words(const Options& options, const std::string& name) {
  std::vector<std::string> words = options.words(name);
  for (const std::string& word : words) {
    const Json settings = kv_type_settings(word);
    for (const auto& [key, kind] : settings.items())
      if (!is_kv_type(kind.get<std::string>()))
        throw Error(ErrorCode::kUsage, "--" + name,
                    "found '" + word + "', expected KIND or KIND/KIND of the storage types that eval --help lists");
  }
  return words;
}

/// Checks sorted shares. @throws Error kUsage if two shares would give the same file name
void refuse_alike(std::span<const double> shares, const char* option) {
  for (std::size_t n = 1; n < shares.size(); ++n)
    if (percent_text(shares[n]) == percent_text(shares[n - 1]))
      throw Error(ErrorCode::kUsage, option,
                  "found " + percent_text(shares[n]) + "% twice, expected shares that differ in four digits");
}

std::vector<double> budgets_of(const Options& options) {
  std::vector<double> budgets = options.shares("budgets");
  std::ranges::sort(budgets, std::greater());
  refuse_alike(budgets, "--budgets");
  return budgets;
}

/// Returns the names of methods and of ways to write configs for them.
/// @param by_default  true: only names that are compared by default
std::vector<std::string> compared_names(bool by_default) {
  std::vector<std::string> names;
  for (const Method* const method : all_methods()) {
    if (!method->only_with_config()) {
      if (!by_default || method->compared) names.emplace_back(method->name);
      continue;
    }
    for (const SeriesMethod& series : find_calibration(*method)->series) names.emplace_back(series.name);
  }
  return names;
}

/// Returns the values of --methods. An engine that executes the full cache alone is its default.
std::vector<std::string> method_words(const Options& options) {
  const Engine* const engine = compared_engine(options);
  if (engine != nullptr && !engine->runs_methods && !options.given("methods")) return {"full"};
  return options.words("methods");
}

/// Returns true if calibrations of a method write configs.
bool has_series(const Method& method) {
  const Calibration* const calibration = find_calibration(method);
  return calibration != nullptr && !calibration->series.empty();
}
/// Returns true if --calibration-text calibrates a method.
bool has_calibration(const Method& method) { return is_calibrated(method.name) || has_series(method); }
bool takes_whole_prefix(const Method& method) { return method.prefill == Prefill::kWhole; }

[[noreturn]] void refuse_method(const std::string& name) {
  const std::vector<std::string> known = compared_names(false);
  throw Error(ErrorCode::kUsage, "--methods",
              "found '" + name + "', expected some of " + listed(known) + did_you_mean(name, known));
}

/// Returns true if --types-with-methods adds a configuration: for a config, or for a method other than full whose rows
/// take a storage type.
bool composes(const Options& options, const CompareGrid& grid) {
  const auto takes = [](const std::string& name) {
    return find_method(name) != &kFullMethod && find_method(name)->takes_kv_type;
  };
  return !options.list("config").empty() || std::ranges::any_of(grid.methods, takes) ||
         std::ranges::any_of(compared_series(options), &SeriesMethod::takes_kv_type);
}

/// Returns true if a method is calibrated on --calibration-text.
bool calibrates(const Options& options, const CompareGrid& grid) {
  return !compared_series(options).empty() || std::ranges::any_of(grid.methods, is_calibrated);
}

/// Refuses an engine whose caches are all the full cache at 16 bits, and options that have no effect with an engine.
void check_engine(const Options& options) {
  const Engine& engine = *compared_engine(options);
  require_compared_caches(engine, "--engine");
  if (!engine.runs_methods) refuse_options(options, {"types-with-methods"}, "--engine " + std::string(engine.name));
}

/// Adds the options of the text that methods are calibrated on.
void add_calibration_options(OptionTable& table) {
  table
      .list("calibration-text", "PATH",
            "calibrate " + listed(method_names(has_calibration)) +
                " to each budget on this text before they are compared on --text; may repeat")
      .value("calibration-window", "T", "tokens per document of this text", "1024")
      .value("calibration-windows", "A:B", "use windows A to B-1 of each of these texts (default: all)")
      .value("calibration-documents", "N", "maximum number of documents of this text (default: all)")
      .value("calibration-dir", "DIR",
             "where configs of " + listed(method_names(has_series)) + " go (default: FILE_calibrated)");
}

}  // namespace

void add_compare_options(OptionTable& table) {
  table
      .value("budgets", "SHARES", "shares of the full cache's bytes, at 2 bytes per value",
             "75%,50%,34.4%,25%,12.5%,9.4%")
      .value("max-ppl-increase", "SHARES", "increases of perplexity; the result names the smallest cache within each",
             "1%,5%")
      .formerly("losses")
      .value("methods", "LIST", "methods to try at each budget", listed(compared_names(true), ","))
      .value("types", "LIST", "storage types of the full cache, KIND or KIND/KIND of keys and values",
             "q8_0,q5_0,q4_0,q8_0/q4_0,fp8,int4_per_token_head,turboquant_4bit_nc,turboquant_3bit_nc,quarot4")
      .formerly("stores")
      .value("types-with-methods", "LIST", "storage types to combine with the other methods, or none", "q8_0,q4_0")
      .formerly("compose")
      .list("config", "FILE", "a config to compare, also with each of --types-with-methods; may repeat");
  add_calibration_options(table);
  table
      .value("prefix", "P",
             "tokens of each document that are not scored, and that " + listed(method_names(takes_whole_prefix)) +
                 " compress (default: three quarters)")
      .value("time", "TIME", "time limit, such as 30s, 60m or 2h (calibration may use about half)")
      .value("engine", "NAME", "only caches that this engine executes, in its storage types: " + listed(engine_names()))
      .flag("no-early-stop", "score every configuration on every document")
      .formerly("full")
      .value("timed-tokens", "N", "tokens to decode when the caches of the Pareto front are timed; 0: no timing", "16")
      .formerly("decode")
      .value("out", "FILE",
             "the comparison (JSON); FILE_pareto: the figure; FILE_speed: decoding speeds of the Pareto front")
      .required()
      .value("best-dir", "DIR",
             "folder for the configs of the best cache of each budget and of the smallest cache of each loss");
  add_other_weights(table);
}

void check_compare_options(const Options& options) {
  static constexpr std::array<std::string_view, 4> kCalibration{"calibration-window", "calibration-windows",
                                                                "calibration-documents", "calibration-dir"};
  if (options.has("time")) refuse_options(options, {"no-early-stop"}, "--time");
  if (options.has("engine")) check_engine(options);
  const CompareGrid grid = compare_grid(options);
  (void)compare_losses(options);
  if (options.has("time")) (void)compare_seconds(options);
  const std::int64_t window = options.integer("window", 2, kMaxTokens);
  const auto tokens = static_cast<std::size_t>(window);
  (void)compare_decode(options, tokens - compare_prefix(options, tokens) - 1);
  require_partner(options, kCalibration, {"calibration-text"});
  const bool series = !compared_series(options).empty();
  if (!options.list("calibration-text").empty() && !calibrates(options, grid))
    throw Error(ErrorCode::kUsage, "--calibration-text", "found with --methods of which none is calibrated");
  if (options.has("calibration-dir") && !series)
    throw Error(ErrorCode::kUsage, "--calibration-dir", "found with --methods of which none writes a config");
  if (options.given("types") && std::ranges::find(grid.methods, "full") == grid.methods.end())
    throw Error(ErrorCode::kUsage, "--types", "needs full among --methods");
  if (options.given("types-with-methods") && !grid.composed.empty() && !composes(options, grid))
    throw Error(ErrorCode::kUsage, "--types-with-methods", "found with --methods of which none takes a storage type");
}

const Engine* compared_engine(const Options& options) {
  return options.has("engine") ? &engine_of(options.text("engine"), "--engine") : nullptr;
}

std::vector<double> compare_losses(const Options& options) {
  std::vector<double> losses = options.shares("max-ppl-increase");
  std::ranges::sort(losses);
  refuse_alike(losses, "--max-ppl-increase");
  return losses;
}

double compare_seconds(const Options& options) {
  const std::string& text = options.text("time");
  static const std::map<char, double> kUnits{{'s', 1}, {'m', 60}, {'h', 3600}};
  if (const auto unit = kUnits.find(text.empty() ? ' ' : text.back()); unit != kUnits.end()) {
    const auto value = parse_real(std::string_view(text).substr(0, text.size() - 1));
    if (value.value_or(0) > 0) return *value * unit->second;
  }
  throw Error(ErrorCode::kUsage, "--time", "found '" + text + "', expected a time such as 30s, 60m or 2h");
}

CompareGrid engine_grid(const Engine& engine, std::vector<std::string> composed) {
  CompareGrid grid{.types = {engine.types.begin(), engine.types.end()}, .settings = settings_of(engine)};
  if (engine.runs_methods) grid.composed = std::move(composed);
  for (const Method* const method : all_methods())
    if (!method->only_with_config() && (engine.runs_methods ? method->compared : method == &kFullMethod))
      grid.methods.emplace_back(method->name);
  return grid;
}

CompareGrid compare_grid(const Options& options) {
  std::vector<std::string> composed;
  if (options.text("types-with-methods") != "none") composed = type_words(options, "types-with-methods");
  const Engine* const engine = compared_engine(options);
  CompareGrid grid = engine != nullptr ? engine_grid(*engine, composed) : CompareGrid{.composed = composed};
  grid.budgets = budgets_of(options);
  if (engine == nullptr || options.given("types")) grid.types = type_words(options, "types");
  if (engine != nullptr && !options.given("methods")) return grid;
  grid.methods.clear();
  for (const std::string& name : options.words("methods")) {
    if (find_series(name) != nullptr) continue;
    if (find_method(name) == nullptr) refuse_method(name);
    grid.methods.push_back(name);
  }
  return grid;
}

std::size_t compare_prefix(const Options& options, std::size_t tokens) {
  if (!options.has("prefix")) return tokens * 3 / 4;
  return options.count("prefix", 0, static_cast<std::int64_t>(tokens) - 2);
}

std::size_t compare_decode(const Options& options, std::size_t most) {
  const std::int64_t limit = options.given("timed-tokens") ? static_cast<std::int64_t>(most) : kMaxDecoded;
  return std::min(most, static_cast<std::size_t>(options.integer("timed-tokens", 0, limit)));
}

std::vector<const SeriesMethod*> compared_series(const Options& options) {
  std::vector<const SeriesMethod*> found;
  const bool calibrated = !options.list("calibration-text").empty();
  for (const std::string& name : method_words(options)) {
    const SeriesMethod* const method = find_series(name);
    if (method == nullptr) continue;
    if (!calibrated && options.given("methods"))
      throw Error(ErrorCode::kUsage, "--methods", "found " + name + ", which needs --calibration-text");
    if (calibrated) found.push_back(method);
  }
  return found;
}

Corpus load_calibration(const Options& options, const RunOptions& run, const ModelSource& model, const Corpus& scored) {
  static const CorpusOptionNames kNames{.text = "calibration-text",
                                        .tokens_file = "",
                                        .window = "calibration-window",
                                        .stride = "",
                                        .documents = "calibration-documents",
                                        .windows = "calibration-windows"};
  Corpus corpus = load_corpus(options, run, model, {}, kNames);
  for (const Document& document : corpus.documents)
    for (const Document& other : scored.documents)
      if (document.overlaps(other))
        throw Error(ErrorCode::kUsage, "--calibration-text",
                    "found window " + std::to_string(document.window_index) + " of " + document.source +
                        ", which is part of what is scored" +
                        (document.source == other.source ? "" : ", the same text as " + other.source) +
                        "; expected others (--calibration-windows)");
  return corpus;
}

CalibrationPlan calibration_plan(const Options& options) {
  return {.series = compared_series(options),
          .folder = options.has("calibration-dir") ? std::filesystem::path(options.text("calibration-dir"))
                                                   : sibling_path(options.text("out"), "_calibrated")};
}

}  // namespace kvs::inline compare
