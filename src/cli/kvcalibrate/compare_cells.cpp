#include "cli/kvcalibrate/compare_cells.h"

#include <filesystem>
#include <functional>

#include "capture/live_source.h"
#include "cli/common/estimate.h"
#include "cli/common/methods.h"
#include "cli/common/progress.h"
#include "cli/kvcalibrate/compare_options.h"
#include "compare/calibration.h"
#include "core/error.h"
#include "eval/budget/calibration.h"
#include "eval/elitekv/series.h"
#include "io/digest.h"

namespace kvs {
namespace {

std::size_t held_out(std::size_t documents) { return std::max<std::size_t>(1, documents / 4); }

/// EliteKV of each budget: its configs, or the reasons why there is none.
class EliteCells {
 public:
  EliteCells(const Options& options, const RunOptions& run, const ModelSession& session, const CompareGrid& grid,
             const Corpus& corpus)
      : run_(run),
        session_(session),
        grid_(grid),
        folder_(calibration_folder(options)),
        provenance_(provenance(options, run, corpus)),
        documents_(tokens_of(corpus)) {}

  std::vector<CompareCell> cells(CalibrationQueue& queue) {
    std::vector<CompareCell> cells;
    for (const double budget : grid_.budgets) {
      const std::filesystem::path file = folder_ / budget_file("elitekv", budget);
      const Json found =
          queue.next({{"method", "elitekv"}, {"budget", budget}}, [&] { return calibrate(budget, file); });
      if (found.contains("error")) {
        cells.push_back({.label = "elitekv",
                         .method = "elitekv",
                         .budget = budget,
                         .error = found.at("error"),
                         .calibrated = true});
        continue;
      }
      if (!std::filesystem::exists(file) || sha256_of_file(file) != found.at("sha256"))
        throw Error(ErrorCode::kConflict, file.string(), "is not what the run before wrote; expected it, or --force");
      const std::vector<std::string> config{file.string()};
      for (CompareCell& cell : config_cells(config, grid_, *session_.source)) cells.push_back(std::move(cell));
    }
    return cells;
  }

 private:
  Json calibrate(double budget, const std::filesystem::path& file) {
    require_method(MethodId::kFactors, session_.config());
    if (documents_.size() < 2)
      throw Error(ErrorCode::kUsage, "--calibration-text", "found one document, expected two or more: one held out");
    std::filesystem::create_directories(folder_);
    if (!series_) start();
    std::optional<Progress> progress;
    std::string_view current;
    series_->write(budget, file, provenance_, run_.replace(),
                   [&](std::string_view step, std::size_t done, std::size_t total) {
                     if (step != current)
                       progress.emplace("elitekv " + std::string(step), static_cast<double>(total), run_.quiet);
                     current = step;
                     progress->update(static_cast<double>(done));
                   });
    return {{"sha256", sha256_of_file(file)}};
  }

  void start() {
    const std::span documents(documents_);
    const auto held = documents.last(held_out(documents.size())),
               fitted = documents.first(documents.size() - held.size());
    states_.emplace(*session_.decoder, std::vector(fitted.begin(), fitted.end()));
    ops_ = make_calibration_ops(*session_.backend);
    series_.emplace(*session_.source, *session_.decoder, *ops_, *states_, fitted, held, grid_.budgets.front());
  }

  const RunOptions& run_;
  const ModelSession& session_;
  const CompareGrid& grid_;
  std::filesystem::path folder_;
  Provenance provenance_;
  std::vector<std::vector<std::int32_t>> documents_;
  std::unique_ptr<CalibrationOps> ops_;
  std::optional<LiveSource> states_;
  std::optional<EliteSeries> series_;
};

}  // namespace

CacheChoice cell_choice(const CompareCell& cell, const ModelSource& source) {
  CacheChoice choice = cell.config.empty() ? CacheChoice{.name = cell.method, .method = find_cache_method(cell.method)}
                                           : cache_of_config(cell.config, source);
  choice.parameters.push_back({cell.settings, cell.label + ": ", ErrorCode::kUsage});
  return choice;
}

std::vector<CompareCell> config_cells(std::span<const std::string> configs, const CompareGrid& grid,
                                      const ModelSource& source) {
  std::vector<CompareCell> cells;
  for (const std::string& path : configs) {
    const CacheChoice choice = cache_of_config(path, source);
    const std::string name = choice.name + " (" + std::filesystem::path(path).stem().string() + ')';
    std::vector<std::string> stores{""};
    if (choice.takes_store()) stores.insert(stores.end(), grid.composed.begin(), grid.composed.end());
    for (const std::string& store : stores) {
      CompareCell cell{
          .label = cell_label(name, store), .method = choice.name, .store = store, .config = path, .calibrated = true};
      cell.settings = store_settings(store);
      if (choice.method != nullptr && choice.method->prefill == Prefill::kWhole) cell.settings["prefix"] = grid.prefix;
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

std::vector<CompareCell> calibrated_cells(const Options& options, const RunOptions& run, const ModelSession& session,
                                          const CompareGrid& grid, const Corpus& corpus, bool elite,
                                          RunRecords& records, std::optional<double> most_seconds, double& seconds) {
  const auto documents = documents_in_turn(corpus);
  CalibrationQueue queue(records, most_seconds);
  std::vector<CompareCell> cells;
  if (elite) cells = EliteCells(options, run, session, grid, corpus).cells(queue);
  std::optional<Progress> progress;
  const auto done = [&](std::size_t count, std::size_t all) {
    if (!progress) progress.emplace("calibrating", static_cast<double>(all), run.quiet);
    progress->update(static_cast<double>(count));
  };
  for (CompareCell& cell : compare_calibrated(*session.decoder, grid, documents, queue, done))
    cells.push_back(std::move(cell));
  seconds += queue.seconds();
  return cells;
}

std::size_t most_calibrated_cells(const CompareGrid& grid, bool elite) {
  std::size_t cells = elite ? 1 + grid.composed.size() : 0;
  for (const std::string& method : grid.methods)
    if (is_calibrated(method)) cells += stores_of(grid, *find_cache_method(method)).size();
  return cells * grid.budgets.size();
}

double calibration_flops(const ModelConfig& model, const CompareGrid& grid, const Corpus& corpus, bool elite) {
  constexpr double kElitePasses = 6;  // the search, three pairs on a quarter of the documents each, queries and outputs
  const auto documents = tokens_of(corpus);
  const double pass = forward_flops(model, static_cast<double>(documents.front().size()));
  double passes = elite ? kElitePasses * static_cast<double>(documents.size()) : 0;
  for (const std::string& method : grid.methods)
    if (is_calibrated(method)) passes += static_cast<double>(most_losses(model, method, {}, {documents, {}}));
  return passes * pass * static_cast<double>(grid.budgets.size());
}

RunnableCells runnable_cells(std::vector<CompareCell>& cells, const ModelSession& session, std::size_t tokens) {
  RunnableCells all;
  for (std::size_t n = 0; n < cells.size(); ++n) {
    if (!cells[n].error.empty()) continue;
    try {
      // A config's factors are loaded for each document, so that those of one cell are held at a time.
      std::function<Cache()> make = [cell = cells[n], &session, tokens] {
        return cache_maker(cell_choice(cell, *session.source), session, tokens)();
      };
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

}  // namespace kvs
