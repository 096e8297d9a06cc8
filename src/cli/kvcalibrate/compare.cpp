#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>

#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/kvcalibrate/cache_choice.h"
#include "cli/kvcalibrate/commands.h"
#include "cli/kvcalibrate/compare_front.h"
#include "cli/kvcalibrate/eval_task.h"
#include "compare/comparison_report.h"
#include "core/error.h"
#include "eval/evaluation_report.h"
#include "io/digest.h"
#include "io/file.h"
#include "model/cache_shape.h"

namespace kvs {
namespace {

constexpr std::size_t kMostComparisonBytes = std::size_t{1} << 30;
constexpr std::int64_t kMostDecoded = 1 << 20;

OptionTable compare_options() {
  OptionTable table(
      "kvcalibrate compare --model PATH --text PATH --out FILE [options]",
      "Runs methods and storage types beside the full cache at equal bytes: perplexity, KL divergence, first choices, "
      "the Pareto front, and the best of every budget. Cells that are clearly beaten on the first documents stop.",
      {"kvcalibrate compare --model SmolLM2.gguf --text book.txt --window 2048 --documents 8 --time 60m --out c.json",
       "kvcalibrate compare --model SmolLM2.gguf --text book.txt --budgets 50%,25% --methods lagkv,h2o --out c.json",
       "kvcalibrate compare --model SmolLM2.gguf --text book.txt --config elitekv.json --best-dir best --out c.json"});
  table.value("budgets", "LIST", "shares of the full cache's bytes at 2 bytes a value", "75%,50%,34.4%,25%,12.5%,9.4%")
      .value("methods", "LIST", "methods that are tried at each budget",
             "full,streaming,dropping,freqkv,lagkv,h2o,snapkv,l2norm,faedkv,kivi")
      .value("stores", "LIST", "storage types of the full cache, KIND or KIND/KIND of keys and values",
             "q8_0,q5_0,q4_0,q8_0/q4_0,fp8,int4_per_token_head,turboquant_4bit_nc,turboquant_3bit_nc,quarot4")
      .value("compose", "LIST", "storage types that the other methods are combined with; none", "q8_0,q4_0")
      .list("config", "FILE", "a config that takes part, and its rows stored as --compose says; may repeat")
      .value("prefix", "P",
             "tokens of each document that are not scored, and that faedkv, snapkv and l2norm compress (default: three "
             "quarters)")
      .value("time", "TIME", "30s, 60m, 2h: what the scoring may take at most")
      .flag("full", "score every cell on every document")
      .value("decode", "N", "tokens that the front's caches are timed on, one at a time; 0: no times", "16")
      .value("out", "FILE", "the comparison (JSON); FILE_pareto: the figure; FILE_speed: the front's decoding")
      .value("best-dir", "DIR", "where to write the best config of each budget");
  add_question_options(table);
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, true);
  return table;
}

/// "75%" or "0.75".
double share_of(const std::string& word) {
  const bool percent = word.ends_with('%');
  try {
    std::size_t end = 0;
    const double value = std::stod(word, &end) / (percent ? 100 : 1);
    if (end == word.size() - (percent ? 1 : 0) && value > 0 && value <= 1) return value;
  } catch (const std::exception&) {
  }
  throw Error(ErrorCode::kUsage, "--budgets", "found '" + word + "', expected a share such as 25% or 0.25");
}

std::vector<double> budgets_of(const Options& options) {
  std::vector<double> budgets;
  for (const std::string& word : options.words("budgets")) budgets.push_back(share_of(word));
  std::ranges::sort(budgets, std::greater());
  budgets.erase(std::ranges::unique(budgets).begin(), budgets.end());
  return budgets;
}

double seconds_of(const std::string& text) {
  static const std::map<char, double> kUnits{{'s', 1}, {'m', 60}, {'h', 3600}};
  try {
    std::size_t end = 0;
    const double value = std::stod(text, &end);
    const auto unit = kUnits.find(text.empty() ? ' ' : text.back());
    if (end + 1 == text.size() && unit != kUnits.end() && value > 0) return value * unit->second;
  } catch (const std::exception&) {
  }
  throw Error(ErrorCode::kUsage, "--time", "found '" + text + "', expected a time such as 30s, 60m or 2h");
}

CompareGrid grid_of(const Options& options) {
  CompareGrid grid{.methods = options.words("methods"), .budgets = budgets_of(options)};
  for (const std::string& name : grid.methods)
    if (find_cache_method(name) == nullptr)
      throw Error(ErrorCode::kUsage, "--methods",
                  "found '" + name + "', which is none of those that eval --help lists");
  grid.stores = options.words("stores");
  if (options.text("compose") != "none") grid.composed = options.words("compose");
  return grid;
}

CacheChoice choice_of(const CompareCell& cell, const ModelSource& source) {
  CacheChoice choice = cell.config.empty() ? CacheChoice{.name = cell.method, .method = find_cache_method(cell.method)}
                                           : cache_of_config(cell.config, source);
  choice.parameters.push_back({cell.settings, cell.label + ": ", ErrorCode::kUsage});
  return choice;
}

/// The cells of --config: as it is, and with its rows stored in each form that they take.
std::vector<CompareCell> config_cells(const Options& options, const CompareGrid& grid, const ModelSource& source) {
  std::vector<CompareCell> cells;
  if (!options.has("config")) return cells;
  for (const std::string& path : options.list("config")) {
    const CacheChoice choice = cache_of_config(path, source);
    const std::string name = choice.name + " (" + std::filesystem::path(path).stem().string() + ')';
    std::vector<std::string> stores{""};
    if (!choice.has_store() && (choice.method == nullptr || choice.method->rows))
      stores.insert(stores.end(), grid.composed.begin(), grid.composed.end());
    for (const std::string& store : stores) {
      CompareCell cell{.label = cell_label(name, store), .method = choice.name, .store = store, .config = path};
      cell.settings = store_settings(store);
      if (choice.method != nullptr && choice.method->prefill == Prefill::kWhole) cell.settings["prefix"] = grid.prefix;
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

/// Texts in turn, so that the first documents are of every kind.
std::vector<std::vector<std::int32_t>> in_turn(const Corpus& corpus) {
  std::vector<std::pair<std::size_t, const Document*>> order;
  std::map<std::string, std::size_t> seen;
  for (const Document& document : corpus.documents) order.emplace_back(seen[document.source]++, &document);
  std::ranges::stable_sort(order, {}, &std::pair<std::size_t, const Document*>::first);
  std::vector<std::vector<std::int32_t>> documents;
  for (const auto& [turn, document] : order) documents.push_back(document->tokens);
  return documents;
}

std::size_t prefix_of(const Options& options, std::size_t tokens) {
  if (!options.has("prefix")) return tokens * 3 / 4;
  return static_cast<std::size_t>(options.integer("prefix", 0, static_cast<std::int64_t>(tokens) - 2));
}

std::size_t decode_of(const Options& options, std::size_t most) {
  const std::int64_t limit = options.given("decode") ? static_cast<std::int64_t>(most) : kMostDecoded;
  return std::min(most, static_cast<std::size_t>(options.integer("decode", 0, limit)));
}

/// Makers of the cells' caches. A cell whose cache cannot be made keeps the reason and is left out.
struct Runnable {
  std::vector<std::size_t> cells;
  std::vector<std::function<Cache()>> make;
};
Runnable runnable(std::vector<CompareCell>& cells, const ModelSession& session, std::size_t tokens) {
  Runnable all;
  for (std::size_t n = 0; n < cells.size(); ++n) {
    if (!cells[n].error.empty()) continue;
    try {
      std::function<Cache()> make = cache_maker(choice_of(cells[n], *session.source), session, tokens);
      (void)make();
      all.make.push_back(std::move(make));
      all.cells.push_back(n);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnsupported && error.code() != ErrorCode::kUsage) throw;
      cells[n].error = error.what();
    }
  }
  return all;
}

std::filesystem::path best_path(const Options& options, double budget) {
  char name[32];
  std::snprintf(name, sizeof name, "best_%.4g.json", 100 * budget);
  return std::filesystem::path(options.text("best-dir")) / name;
}

/// The best cell of each budget as a config; one that came as a config is named in the comparison.
void write_best(const Options& options, const RunOptions& run, const Json& comparison,
                std::span<const CompareCell> cells, const ModelSession& session, const Provenance& record) {
  std::filesystem::create_directories(options.text("best-dir"));
  for (const Json& best : comparison.at("best")) {
    if (best.at("cell").is_null()) continue;
    const auto n = best.at("cell").get<std::size_t>();
    if (!cells[n].config.empty()) continue;
    const Json& found = comparison.at("cells")[n];
    const Json quality{
        {"text", "compared documents"},
        {"ppl", found.at("ppl")},
        {"ppl_full", comparison.at("full").at("ppl")},
        {"bytes_per_token", found.at("bytes_ratio").get<double>() * full_cache_bytes(session.config(), 1)}};
    const Json config = make_config(cells[n].method, session.config(), session.source->sha256(),
                                    choice_of(cells[n], *session.source).resolved(session.config()), Json::object(),
                                    record, quality, {});
    write_file_atomically(best_path(options, best.at("budget").get<double>()), dump_json(config) + "\n", run.replace());
  }
}

std::filesystem::path speed_path(const Options& options) { return beside(options.text("out"), "_speed") += ".json"; }

std::vector<FrontCell> front_of(const Json& comparison, std::span<const CompareCell> cells, const ModelSource& source) {
  std::vector<FrontCell> front;
  for (std::size_t n = 0; n < cells.size(); ++n)
    if (const Json& found = comparison.at("cells")[n]; found.at("front").get<bool>())
      front.push_back({n, cells[n].label, found.at("budget").get<double>(), choice_of(cells[n], source)});
  return front;
}

/// Every file that the run writes beside `out` and may find there.
std::vector<std::filesystem::path> other_outputs(const Options& options, std::span<const double> budgets) {
  std::vector<std::filesystem::path> paths = figure_paths(options.text("out"), "_pareto");
  paths.push_back(speed_path(options));
  if (options.has("best-dir") && std::filesystem::exists(options.text("best-dir")))
    for (const double budget : budgets) paths.push_back(best_path(options, budget));
  return paths;
}

Json identity_of(const Options& options, const ModelSource& source, const Corpus& corpus) {
  Json identity = run_identity(options, source.sha256(), corpus);
  if (options.has("config"))
    for (const std::string& path : options.list("config")) identity["configs"].push_back(sha256_of_file(path));
  return identity;
}

}  // namespace

void run_compare(Arguments arguments) {
  const auto options = compare_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  if (!options->has("out")) throw Error(ErrorCode::kUsage, "--out", "expected a file");
  if (options->has("time") && options->flag("full"))
    throw Error(ErrorCode::kUsage, "--full", "found together with --time");
  CompareGrid grid = grid_of(*options);
  ComparisonPlan plan{.all = options->flag("full")};
  if (options->has("time")) plan.seconds = seconds_of(options->text("time"));
  const std::string out = options->text("out");
  check_outputs(out, other_outputs(*options, grid.budgets), *options, run);
  const OutputLock lock(out, run.lock);

  auto source = open_model(*options);
  const Corpus corpus = load_corpus(*options, run, *source);
  const auto documents = in_turn(corpus);
  grid.tokens = documents.front().size();
  grid.prefix = plan.prefix = prefix_of(*options, grid.tokens);
  if (options->has("task")) check_questions(*options, run, *source);
  const std::size_t decode = decode_of(*options, grid.tokens - grid.prefix - 1);
  std::vector<CompareCell> cells = compare_cells(grid, source->config());
  for (CompareCell& cell : config_cells(*options, grid, *source)) cells.push_back(std::move(cell));
  const Json identity = identity_of(*options, *source, corpus);
  if (is_finished(out, out, run,
                  [&](const Json& json) { return is_of_run(json, "", *options, source->sha256(), corpus); }))
    return print_result(run, parse_json(read_text_file(out, kMostComparisonBytes), out), out + ": finished before\n");
  check_journal(out, run);

  const ModelSession session = load_model(std::move(source), *options, run);
  const ModelConfig& config = session.config();
  const Runnable ready = runnable(cells, session, grid.tokens);
  Journal journal = open_journal(out, identity, run);
  announce({.flops = static_cast<double>((1 + ready.make.size()) * documents.size()) *
                     forward_flops(config, static_cast<double>(grid.tokens)),
            .memory_bytes = session_memory(session, grid.tokens) + 4 * full_cache_bytes(config, grid.tokens),
            .at_most = !plan.all},
           *session.backend, run);
  Progress progress("compare", 1, run.quiet);
  const std::vector<CellResult> scored =
      score_cells(*session.decoder, documents, ready.make, plan, &journal,
                  [&](double spent, double expected) { progress.update(spent, expected); });
  std::vector<CellResult> results(cells.size());
  for (std::size_t i = 0; i < scored.size(); ++i) results[ready.cells[i]] = scored[i];

  const Provenance record = provenance(*options, run, corpus);
  Json result{{"format", "kvspectrum-comparison"},
              {"version", 1},
              {"model", model_json(config, session.source->sha256(), grid.tokens)},
              {"dtype", name_of(session.backend->compute_type())},
              {"command", record.command},
              {"tool_version", record.tool_version},
              {"seed", record.seed},
              {"text_sha256", record.text_sha256},
              {"tokens", grid.tokens},
              {"documents", documents.size()},
              {"prefix", plan.prefix}};
  result.update(comparison_json(cells, results, grid.budgets, config, grid.tokens));
  const std::vector<FrontCell> front = front_of(result, cells, *session.source);
  if (options->has("task")) {
    const FrontAnswers answers = ask_front(*options, run, session, front);
    result["full"]["retrieval"] = answers.full;
    for (std::size_t i = 0; i < front.size(); ++i) result["cells"][front[i].cell]["retrieval"] = answers.cells[i];
  }
  Json speeds;
  if (decode > 0) {
    speeds = time_front(session, documents.front(), decode, front);
    write_file_atomically(speed_path(*options), dump_json(speeds) + "\n", run.replace());
  }
  if (options->has("best-dir")) write_best(*options, run, result, cells, session, record);
  const ParetoPlot plot = pareto_plot(
      result, config.name + " · " + std::to_string(documents.size()) + " documents of " + std::to_string(grid.tokens) +
                  " tokens, the last " + std::to_string(grid.tokens - plan.prefix) + " scored");
  if (!plot.points.empty()) write_figure(beside(out, "_pareto"), render_pareto(plot), run.replace());
  write_file_atomically(out, dump_json(result) + "\n", run.replace());
  journal.remove();
  print_result(run, result, "compare: " + out + '\n' + comparison_text(result, speeds));
}

}  // namespace kvs
