#include "cli/kvcalibrate/compare_cells.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>

#include "cli/common/progress.h"
#include "cli/kvcalibrate/compare_options.h"
#include "compare/calibration.h"
#include "core/error.h"
#include "eval/budget/calibration.h"
#include "eval/evaluation_report.h"
#include "io/digest.h"

namespace kvs {
namespace {

SeriesSize series_size(const ModelSession& session, const CompareGrid& grid,
                       std::span<const std::vector<std::int32_t>> documents) {
  return {session.config(), session.backend->compute_type(), documents.size(), documents.front().size(),
          grid.budgets.front()};
}

/// Seconds that a series takes for one budget more than `done`.
double step_seconds(const SeriesMethod& method, const SeriesSize& size, std::size_t done, Backend& backend) {
  double passes = method.passes(size, done + 1), coded = method.coded_values(size, done + 1, 0);
  if (done > 0) {
    passes -= method.passes(size, done);
    coded -= method.coded_values(size, done, 0);
  }
  return expected_seconds(
      {.flops = passes * forward_flops(size.model, static_cast<double>(size.tokens)), .coded_values = coded}, backend);
}

/// The cells of a method's configs for every budget, or the reasons why there is none.
std::vector<CompareCell> series_cells(const SeriesMethod& method, const SeriesInput& input, const CompareGrid& grid,
                                      const std::filesystem::path& folder, const Provenance& record,
                                      const RunOptions& run, CalibrationQueue& queue) {
  const std::string name(method.name);
  std::unique_ptr<ConfigSeries> series;
  const auto calibrate = [&](double budget, const std::filesystem::path& file) -> Json {
    if (!series) series = method.start(input);
    std::optional<Progress> progress;
    std::string_view current;
    series->write(budget, file, record, run.replace(), [&](std::string_view step, std::size_t done, std::size_t total) {
      if (step != current)
        progress.emplace("compare: " + name + ' ' + std::string(step), static_cast<double>(total), run.quiet);
      current = step;
      progress->update(static_cast<double>(done));
    });
    return {{"sha256", sha256_of_file(file)}};
  };
  const SeriesSize size = series_size(input.session, grid, input.documents);
  std::vector<CompareCell> cells;
  std::size_t made = 0;
  for (const double budget : grid.budgets) {
    const std::filesystem::path file = folder / share_file(name, budget);
    const Json found = queue.next(
        {{"method", name}, {"budget", budget}}, [&] { return calibrate(budget, file); },
        queue.is_limited() ? step_seconds(method, size, made, *input.session.backend) : 0);
    if (found.contains("error")) {
      cells.push_back(
          {.label = name, .method = name, .budget = budget, .error = found.at("error"), .calibrated = true});
      continue;
    }
    if (!std::filesystem::exists(file) || sha256_of_file(file) != found.at("sha256"))
      throw Error(ErrorCode::kConflict, file.string(), "is not what the run before wrote; expected it, or --force");
    ++made;
    const std::vector<std::string> config{file.string()};
    for (CompareCell& cell : config_cells(config, grid, *input.session.source)) cells.push_back(std::move(cell));
  }
  return cells;
}

/// The methods of series by the passes that they take, so that a short time is enough for most of them.
std::vector<const SeriesMethod*> cheapest_first(const Options& options, const SeriesSize& size,
                                                const CompareGrid& grid) {
  std::vector<const SeriesMethod*> methods = compared_series(options);
  std::ranges::stable_sort(methods, {},
                           [&](const SeriesMethod* method) { return method->passes(size, grid.budgets.size()); });
  return methods;
}

/// Every cell, the budgets taking turns: where the time ends early each has some that are scored.
std::vector<std::size_t> budgets_in_turn(std::span<const CompareCell> cells) {
  std::map<double, std::size_t> count;
  std::vector<std::size_t> turn, order(cells.size());
  for (const CompareCell& cell : cells) turn.push_back(count[cell.budget]++);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t n) { return turn[n]; });
  return order;
}

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
                                          const CompareGrid& grid, const Corpus& corpus, RunRecords& records,
                                          std::optional<double> most_seconds, double& seconds) {
  const auto documents = tokens_of(corpus);
  CalibrationQueue queue(records, most_seconds);
  std::vector<CompareCell> cells;
  for (const SeriesMethod* const method : cheapest_first(options, series_size(session, grid, documents), grid))
    for (CompareCell& cell : series_cells(*method, {session, documents, grid.tokens, grid.budgets.front()}, grid,
                                          calibration_folder(options), provenance(options, run, corpus), run, queue))
      cells.push_back(std::move(cell));
  std::optional<Progress> progress;
  const auto done = [&](std::size_t count, std::size_t all) {
    if (!progress) progress.emplace("calibrating", static_cast<double>(all), run.quiet);
    progress->update(static_cast<double>(count));
  };
  const auto in_turn = documents_in_turn(corpus);
  double pass_seconds = 0;
  if (queue.is_limited())
    pass_seconds = expected_seconds(
        {.flops = forward_flops(session.config(), static_cast<double>(documents.front().size()))}, *session.backend);
  for (CompareCell& cell : compare_calibrated(*session.decoder, grid, in_turn, queue, pass_seconds, done))
    cells.push_back(std::move(cell));
  seconds += queue.seconds();
  return cells;
}

std::size_t most_calibrated_cells(const Options& options, const CompareGrid& grid) {
  std::size_t cells = 0;
  for (const SeriesMethod* const method : compared_series(options))
    cells += 1 + (method->rows ? grid.composed.size() : 0);
  for (const std::string& method : grid.methods)
    if (is_calibrated(method)) cells += stores_of(grid, *find_cache_method(method)).size();
  return cells * grid.budgets.size();
}

Estimate calibration_estimate(const Options& options, const ModelSession& session, const CompareGrid& grid,
                              const Corpus& corpus, std::size_t scored) {
  const ModelConfig& model = session.config();
  const auto documents = tokens_of(corpus);
  const std::size_t tokens = documents.front().size();
  const SeriesSize size = series_size(session, grid, documents);
  double passes = 0, coded = 0, most = 0;
  for (const SeriesMethod* const method : compared_series(options)) {
    passes += method->passes(size, grid.budgets.size());
    coded += method->coded_values(size, grid.budgets.size(), scored);
    most = std::max(most, method->memory(size));
  }
  for (const std::string& method : grid.methods)
    if (is_calibrated(method)) {
      passes += static_cast<double>(grid.budgets.size() * most_losses(model, method, {}, {documents, {}}));
      const auto streams = static_cast<double>(sizeof(float) * documents.size() * tokens * model.d_model);
      most = std::max(most, streams + 4 * full_cache_bytes(model, tokens));
    }
  return {.flops = passes * forward_flops(model, static_cast<double>(tokens)),
          .memory_bytes = session_memory(session, tokens) + most,
          .coded_values = coded};
}

RunnableCells runnable_cells(std::vector<CompareCell>& cells, const ModelSession& session, std::size_t tokens) {
  RunnableCells all;
  for (const std::size_t n : budgets_in_turn(cells)) {
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
