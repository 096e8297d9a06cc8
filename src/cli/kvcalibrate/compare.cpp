#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <optional>

#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/kvcalibrate/commands.h"
#include "cli/kvcalibrate/compare_cells.h"
#include "cli/kvcalibrate/compare_front.h"
#include "cli/kvcalibrate/compare_options.h"
#include "compare/comparison_report.h"
#include "core/error.h"
#include "eval/evaluation_report.h"
#include "io/digest.h"
#include "io/file.h"
#include "model/cache_shape.h"

namespace kvs {
namespace {

constexpr std::size_t kMostComparisonBytes = std::size_t{1} << 30;
constexpr double kCellPasses = 2;  // what a cell's pass takes relative to one without a cache, in the mean
constexpr double kScoring = 0.9;   // of --time; the rest is the front's

/// Copies a config and the files that it names.
void copy_config(const std::filesystem::path& from, const std::filesystem::path& to, bool force) {
  for (const Json& file : read_config(from).at("files")) {
    const std::string name = file.at("path");
    const auto how = force ? std::filesystem::copy_options::overwrite_existing : std::filesystem::copy_options::none;
    std::filesystem::copy_file(from.parent_path() / name, to.parent_path() / name, how);
  }
  write_file_atomically(to, read_text_file(from, kMostComparisonBytes), force);
}

/// The best cell of each budget as a config. One that came as a config is copied; how its rows are stored stands in the
/// comparison.
void write_best(const Options& options, const RunOptions& run, const Json& comparison,
                std::span<const CompareCell> cells, const ModelSession& session, const Provenance& record) {
  std::filesystem::create_directories(options.text("best-dir"));
  for (const Json& best : comparison.at("best")) {
    if (best.at("cell").is_null()) continue;
    const auto n = best.at("cell").get<std::size_t>();
    const auto to = std::filesystem::path(options.text("best-dir")) / budget_file("best", best.at("budget"));
    if (!cells[n].config.empty()) {
      copy_config(cells[n].config, to, run.replace());
      continue;
    }
    const Json& found = comparison.at("cells")[n];
    const Json quality{
        {"text", "compared documents"},
        {"ppl", found.at("ppl")},
        {"ppl_full", comparison.at("full").at("ppl")},
        {"bytes_per_token", found.at("bytes_ratio").get<double>() * full_cache_bytes(session.config(), 1)}};
    const Json config = make_config(cells[n].method, session.config(), session.source->sha256(),
                                    cell_choice(cells[n], *session.source).resolved(session.config()), Json::object(),
                                    record, quality, {});
    write_file_atomically(to, dump_json(config) + "\n", run.replace());
  }
}

std::filesystem::path speed_path(const Options& options) { return beside(options.text("out"), "_speed") += ".json"; }

std::vector<FrontCell> front_of(const Json& comparison, std::span<const CompareCell> cells) {
  std::vector<FrontCell> front;
  for (std::size_t n = 0; n < cells.size(); ++n)
    if (const Json& found = comparison.at("cells")[n]; found.at("front").get<bool>())
      front.push_back({n, &cells[n], found.at("budget").get<double>()});
  return front;
}

/// Every file that the run writes beside `out` and may find there.
std::vector<std::filesystem::path> other_outputs(const Options& options, std::span<const double> budgets) {
  std::vector<std::filesystem::path> paths = figure_paths(options.text("out"), "_pareto");
  paths.push_back(speed_path(options));
  if (options.has("best-dir") && std::filesystem::exists(options.text("best-dir")))
    for (const double budget : budgets)
      paths.push_back(std::filesystem::path(options.text("best-dir")) / budget_file("best", budget));
  if (!std::filesystem::exists(calibration_folder(options))) return paths;
  for (const SeriesMethod* const method : compared_series(options))
    for (const double budget : budgets) {
      paths.push_back(calibration_folder(options) / budget_file(std::string(method->name), budget));
      paths.push_back(std::filesystem::path(paths.back()).replace_extension(".safetensors"));
    }
  return paths;
}

Json identity_of(const Options& options, const ModelSource& source, const Corpus& corpus,
                 const std::optional<Corpus>& calibration) {
  Json identity = run_identity(options, source.sha256(), corpus);
  if (calibration) identity["calibration_text_sha256"] = calibration->text_sha256;
  if (options.has("config"))
    for (const std::string& path : options.list("config")) identity["configs"].push_back(sha256_of_file(path));
  return identity;
}

Json calibration_json(const std::optional<Corpus>& corpus) {
  if (!corpus) return nullptr;
  return {{"text_sha256", corpus->text_sha256},
          {"tokens", corpus->documents.front().tokens.size()},
          {"documents", corpus->documents.size()}};
}

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

void run_compare(Arguments arguments) {
  const auto options = compare_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  if (!options->has("out")) throw Error(ErrorCode::kUsage, "--out", "expected a file");
  if (options->has("time") && options->flag("full"))
    throw Error(ErrorCode::kUsage, "--full", "found together with --time");
  const Stopwatch since_start;
  CompareGrid grid = compare_grid(*options);
  ComparisonPlan plan{.all = options->flag("full")};
  if (options->has("time")) plan.seconds = kScoring * compare_seconds(*options);
  const bool calibrates = !options->list("calibration-text").empty();
  const std::string out = options->text("out");
  const auto others = other_outputs(*options, grid.budgets);
  check_outputs(out, others, *options, run);
  const OutputLock lock(out, run.lock, others);

  auto source = open_model(*options);
  const Corpus corpus = load_corpus(*options, run, *source);
  const auto documents = documents_in_turn(corpus);
  std::optional<Corpus> calibration;
  if (calibrates) calibration = load_calibration(*options, run, *source, corpus);
  grid.tokens = documents.front().size();
  grid.prefix = plan.prefix = compare_prefix(*options, grid.tokens);
  if (options->has("task")) check_questions(*options, run, *source);
  const std::size_t decode = compare_decode(*options, grid.tokens - grid.prefix - 1);
  std::vector<CompareCell> cells = compare_cells(grid, source->config());
  for (CompareCell& cell : config_cells(options->list("config"), grid, *source)) cells.push_back(std::move(cell));
  const Json identity = identity_of(*options, *source, corpus, calibration);
  if (is_finished(out, out, run,
                  [&](const Json& json) { return is_of_run(json, "", *options, source->sha256(), corpus); }))
    return print_result(run, parse_json(read_text_file(out, kMostComparisonBytes), out), out + ": finished before\n");
  check_journal(out, run);

  const ModelSession session = load_model(std::move(source), *options, run);
  const ModelConfig& config = session.config();
  Journal journal = open_journal(out, identity, run);
  RunRecords records(&journal);
  const std::size_t most_cells = cells.size() + (calibration ? most_calibrated_cells(*options, grid) : 0);
  announce({.flops = kCellPasses * static_cast<double>((1 + most_cells) * documents.size()) *
                         forward_flops(config, static_cast<double>(grid.tokens)) +
                     (calibration ? calibration_flops(*options, config, grid, *calibration) : 0),
            .memory_bytes = session_memory(session, grid.tokens) + 4 * full_cache_bytes(config, grid.tokens),
            .at_most = !plan.all},
           *session.backend, run);
  if (plan.seconds) *plan.seconds -= since_start.seconds();
  if (calibration) {
    double spent = 0;
    const auto most = plan.seconds ? std::optional(*plan.seconds / 2) : std::nullopt;
    for (CompareCell& cell : calibrated_cells(*options, run, session, grid, *calibration, records, most, spent))
      cells.push_back(std::move(cell));
    if (plan.seconds) *plan.seconds -= spent;
  }
  const RunnableCells ready = runnable_cells(cells, session, grid.tokens);
  Progress progress("compare", 1, run.quiet);
  const std::vector<CellResult> scored =
      score_cells(*session.decoder, documents, ready.make, plan, records,
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
              {"calibration", calibration_json(calibration)},
              {"tokens", grid.tokens},
              {"documents", documents.size()},
              {"prefix", plan.prefix}};
  result.update(comparison_json(cells, results, grid.budgets, config, grid.tokens));
  const std::vector<FrontCell> front = front_of(result, cells);
  const auto left = [&]() -> std::optional<double> {
    if (!options->has("time")) return std::nullopt;
    return compare_seconds(*options) - since_start.seconds() - records.replayed_seconds();
  };
  Json speeds;
  if (decode > 0) {
    std::optional<double> most = left();
    if (most && options->has("task")) *most /= 2;
    speeds = time_front(session, run, documents.front(), decode, front, most);
    write_file_atomically(speed_path(*options), dump_json(speeds) + "\n", run.replace());
  }
  if (options->has("task")) {
    const FrontAnswers answers = ask_front(*options, run, session, front, records, left());
    result["full"]["retrieval"] = answers.full;
    for (std::size_t i = 0; i < front.size(); ++i) result["cells"][front[i].cell]["retrieval"] = answers.cells[i];
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
