#include "compare/calibration.h"

#include <algorithm>
#include <chrono>

#include "calibrate/budget/grid.h"
#include "core/error.h"
#include "eval/budget/calibration.h"
#include "eval/budget/space.h"
#include "model/cache_shape.h"
#include "policy/cache_size.h"

namespace kvs {
namespace {

std::size_t share_of_full(const CacheMethod& method, const ModelConfig& model, std::size_t tokens, double budget) {
  const CacheShape shape = cache_shape(model);
  return static_cast<std::size_t>(budget * static_cast<double>(CacheSizes(method, shape, model.layers, tokens).full()));
}

/// The place in the method's grid that is best on the documents.
Json calibrated_place(Decoder& decoder, const CacheMethod& method, const CompareGrid& grid, const BudgetText& text,
                      double budget) {
  const std::size_t tokens = text.measured.front().size();
  Json fixed = Json::object();
  if (method.prefill == Prefill::kWhole) fixed["prefix"] = grid.prefix * tokens / grid.tokens;
  const ModelConfig& model = decoder.model().config();
  const BudgetPlan wanted{share_of_full(method, model, tokens, calibration_budget(model, budget, grid.tokens, tokens)),
                          fixed};
  return {{"place", calibrate_to_budget(decoder, method.name, wanted, text).trials.front().place}};
}

/// A cell for each storage type with the settings at that place, for the documents that are compared.
std::vector<CompareCell> cells_at(std::size_t place, const CompareGrid& grid, const ModelConfig& model,
                                  const CacheMethod& method, double budget) {
  std::vector<CompareCell> cells;
  for (const std::string& store : stores_of(grid, method)) {
    CompareCell cell{.label = cell_label(std::string(method.name) + ", calibrated", store),
                     .method = std::string(method.name),
                     .store = store,
                     .budget = budget,
                     .calibrated = true};
    try {
      BudgetSpace space(method, model, grid.tokens, share_of_full(method, model, grid.tokens, budget),
                        common_settings(grid, method, store));
      if (const auto settings = space.at(place))
        cell.settings = *settings;
      else
        cell.error = "its settings need more";
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUsage && error.code() != ErrorCode::kUnsupported) throw;
      cell.error = error.what();
    }
    if (!cell.error.empty() || !keeps_everything(method, cell.settings, grid.tokens)) cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace

Json CalibrationQueue::next(const Json& what, const std::function<Json()>& calibrate, double expected) {
  Ranks& ranks = records_->ranks();
  const Json told =
      ranks.tell(ranks.leads() ? Json{{"found", made(what, calibrate, expected)}, {"spent", spent_}} : Json());
  spent_ = told.at("spent").get<double>();
  return told.at("found");
}

Json CalibrationQueue::made(const Json& what, const std::function<Json()>& calibrate, double expected) {
  if (records_->replays()) {
    const Json& record = records_->next();
    spent_ += record.at("seconds").get<double>();
    return record.at("found");
  }
  const auto start = std::chrono::steady_clock::now();
  Json found;
  if (limit_ && spent_ + expected > *limit_) {
    found = {{"error", "no time was left to calibrate it"}};
  } else {
    try {
      found = calibrate();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUsage && error.code() != ErrorCode::kUnsupported) throw;
      found = {{"error", error.what()}};
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  spent_ += seconds;
  records_->keep({{"calibrated", what}, {"seconds", seconds}, {"found", found}});
  return found;
}

double calibration_budget(const ModelConfig& model, double budget, std::size_t compared, std::size_t tokens) {
  const auto windows = static_cast<double>(windowed_tokens(model, compared)),
             all = static_cast<double>(model.cached_tokens(compared));
  if (windows == 0 || windows == all) return budget;
  const double share = (budget * all - windows) / (all - windows);
  const auto now = static_cast<double>(windowed_tokens(model, tokens)),
             all_now = static_cast<double>(model.cached_tokens(tokens));
  return std::max(0.0, (now + share * (all_now - now)) / all_now);
}

bool is_calibrated(std::string_view method) {
  const CacheMethod* const found = find_cache_method(method);
  return found != nullptr && found->sized != nullptr && budget_grid(method).settings({}).size() > 1;
}

std::vector<CompareCell> compare_calibrated(Decoder& decoder, const CompareGrid& grid,
                                            std::span<const std::vector<std::int32_t>> documents,
                                            CalibrationQueue& queue, double pass_seconds,
                                            const std::function<void(std::size_t, std::size_t)>& progress) {
  const ModelConfig& model = decoder.model().config();
  std::vector<const CacheMethod*> methods;
  for (const std::string& name : grid.methods)
    if (is_calibrated(name)) methods.push_back(find_cache_method(name));
  std::vector<std::shared_ptr<FullPass>> full;
  for (const auto& document : documents) full.push_back(std::make_shared<FullPass>(decoder, document));
  std::vector<CompareCell> cells;
  std::size_t done = 0;
  for (const double budget : grid.budgets)
    for (const CacheMethod* const method : methods) {
      progress(done++, methods.size() * grid.budgets.size());
      const auto passes = static_cast<double>(most_losses(model, method->name, {}, {documents, {}}));
      const Json found = queue.next(
          {{"method", method->name}, {"budget", budget}},
          [&] {
            return calibrated_place(decoder, *method, grid, {documents, {}, full}, budget);
          },
          passes * pass_seconds);
      if (found.contains("error")) {
        cells.push_back({.label = std::string(method->name) + ", calibrated",
                         .method = std::string(method->name),
                         .budget = budget,
                         .error = found.at("error"),
                         .calibrated = true});
        continue;
      }
      for (CompareCell& cell : cells_at(found.at("place"), grid, model, *method, budget))
        cells.push_back(std::move(cell));
    }
  return cells;
}

}  // namespace kvs
