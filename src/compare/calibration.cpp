#include "compare/calibration.h"

#include <chrono>

#include "calibrate/budget/grid.h"
#include "core/error.h"
#include "eval/budget/calibration.h"
#include "model/cache_shape.h"
#include "policy/cache_size.h"

namespace kvs {
namespace {

Json calibrated_settings(Decoder& decoder, const CacheMethod& method, const CompareGrid& grid,
                         const CompareCalibration& plan, double budget) {
  const ModelConfig& model = decoder.model().config();
  const std::size_t tokens = plan.documents.front().size();
  const CacheShape shape = cache_shape(model);
  const auto full = static_cast<double>(CacheSizes(method, shape, model.layers, tokens).full());
  Json fixed = Json::object();
  if (method.prefill == Prefill::kWhole) fixed["prefix"] = grid.prefix * tokens / grid.tokens;
  return calibrate_to_budget(decoder, method.name, {static_cast<std::size_t>(budget * full), fixed},
                             {plan.documents, {}})
      .settings();
}

}  // namespace

Json CalibrationQueue::next(const Json& what, const std::function<Json()>& calibrate) {
  if (records_->replays()) {
    const Json& record = records_->next();
    spent_ += record.at("seconds").get<double>();
    return record.at("found");
  }
  const auto start = std::chrono::steady_clock::now();
  Json found;
  if (limit_ && spent_ > *limit_) {
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

bool is_calibrated(std::string_view method) {
  const CacheMethod* const found = find_cache_method(method);
  return found != nullptr && found->sized != nullptr && budget_grid(method).settings().size() > 1;
}

std::vector<CompareCell> compare_calibrated(Decoder& decoder, const CompareGrid& grid, const CompareCalibration& plan,
                                            CalibrationQueue& queue,
                                            const std::function<void(std::size_t, std::size_t)>& progress) {
  std::vector<const CacheMethod*> methods;
  for (const std::string& name : grid.methods)
    if (is_calibrated(name)) methods.push_back(find_cache_method(name));
  std::vector<CompareCell> cells;
  std::size_t done = 0;
  for (const double budget : grid.budgets)
    for (const CacheMethod* const method : methods) {
      progress(done++, methods.size() * grid.budgets.size());
      const Json found = queue.next({{"method", method->name}, {"budget", budget}},
                                    [&] { return calibrated_settings(decoder, *method, grid, plan, budget); });
      if (found.contains("error")) {
        cells.push_back({.label = std::string(method->name) + ", calibrated",
                         .method = std::string(method->name),
                         .budget = budget,
                         .error = found.at("error"),
                         .calibrated = true});
        continue;
      }
      for (CompareCell& cell : calibrated_cells(grid, decoder.model().config(), *method, found, budget))
        cells.push_back(std::move(cell));
    }
  return cells;
}

}  // namespace kvs
