// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/calibration.h"

#include <algorithm>
#include <chrono>

#include "calibrate/budget/calibration.h"
#include "calibrate/budget/grid.h"
#include "calibrate/budget/space.h"
#include "calibrate/common/cache_size.h"
#include "core/error.h"
#include "model/cache_shape.h"

namespace kvs::inline compare {
namespace {

std::size_t share_of_full(const Method& method, const ModelConfig& model, std::size_t tokens, double budget) {
  const CacheShape shape = cache_shape(model);
  return static_cast<std::size_t>(budget * static_cast<double>(CacheSizes(method, shape, tokens).full()));
}

/// Thrown to end a calibration that is out of time.
struct OutOfTime {};

/// Returns the index in the method's grid that is best on the documents. @param step  called after each measurement
Json calibrated_grid_index(Decoder& decoder, const Method& method, const CompareGrid& grid, const BudgetText& text,
                           double budget, const std::function<void(std::size_t, std::size_t)>& step) {
  const std::size_t tokens = text.measured.front().size();
  Json fixed = Json::object();
  if (method.prefill == Prefill::kWhole) fixed["prefix"] = grid.prefix * tokens / grid.tokens;
  const ModelConfig& model = decoder.model().config();
  const BudgetPlan wanted{share_of_full(method, model, tokens, calibration_budget(model, budget, grid.tokens, tokens)),
                          fixed};
  return {{"grid_index", calibrate_to_budget(decoder, method.name, wanted, text, step).trials.front().grid_index}};
}

/// Returns a configuration for each storage type, with the settings at a grid index sized for the compared documents.
std::vector<Configuration> configurations_at(std::size_t grid_index, const CompareGrid& grid, const ModelConfig& model,
                                             const Method& method, double budget) {
  std::vector<Configuration> configurations;
  for (const std::string& type : kv_types_of(grid, method)) {
    Configuration one{.label = configuration_label(std::string(method.name) + ", calibrated", type),
                      .method = std::string(method.name),
                      .type = type,
                      .budget = budget,
                      .calibrated = true};
    try {
      BudgetSpace space(method, model, grid.tokens, share_of_full(method, model, grid.tokens, budget),
                        common_settings(grid, method, type));
      if (const auto settings = space.at(grid_index))
        one.settings = *settings;
      else
        one.error = "its settings need more";
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
      one.error = error.what();
    }
    if (!one.error.empty() || !keeps_everything(method, one.settings, grid.tokens))
      configurations.push_back(std::move(one));
  }
  return configurations;
}

}  // namespace

std::size_t CalibrationQueue::documents(std::string_view method, std::size_t all, std::size_t waiting,
                                        const std::function<double(std::size_t)>& expected) {
  Ranks& ranks = records_->ranks();
  Json chosen;
  if (ranks.is_root()) {
    if (records_->replays()) {
      const JsonCursor record = records_->next();
      require_record(record.at("calibrates"), method);
      chosen = record_size(record.at("documents"), 1, all);
    } else {
      chosen = affordable_documents(all, waiting, expected);
      records_->keep({{"calibrates", method}, {"documents", chosen}});
    }
  }
  return ranks.broadcast(chosen).get<std::size_t>();
}

std::size_t CalibrationQueue::affordable_documents(std::size_t all, std::size_t waiting,
                                                   const std::function<double(std::size_t)>& expected) const {
  if (!limit_) return all;
  const double share = (*limit_ - spent_) / static_cast<double>(waiting);
  std::size_t fits = std::min(all, kMinCalibrated), too_many = all + 1;
  while (too_many - fits > 1) {
    const std::size_t middle = fits + (too_many - fits) / 2;
    (pace() * expected(middle) <= share ? fits : too_many) = middle;
  }
  return fits;
}

Json CalibrationQueue::next(const Json& what, const std::function<Json()>& calibrate, double expected) {
  Ranks& ranks = records_->ranks();
  const Json told =
      ranks.broadcast(ranks.is_root() ? Json{{"found", made(what, calibrate, expected)}, {"spent", spent_}} : Json());
  spent_ = told.at("spent").get<double>();
  return told.at("found");
}

void CalibrationQueue::check_time() const {
  constexpr double kMaxOver = 1.4;  // tolerance: the expected time is an estimate
  const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  if (limit_ && spent_ + taken > kMaxOver * *limit_) throw OutOfTime();
}

void CalibrationQueue::count(double seconds, double expected) {
  spent_ += seconds;
  expected_ += expected;
  if (expected > 0) paced_ += seconds;
}

Json CalibrationQueue::made(const Json& what, const std::function<Json()>& calibrate, double expected) {
  if (records_->replays()) {
    const JsonCursor record = records_->next();
    require_record(record.at("calibrated"), what);
    count(record_seconds(record), record_real(record.at("expected")));
    if (record.at("found").has("error")) (void)record.at("found").at("error").string();
    return record.at("found").value();
  }
  begun_ = std::chrono::steady_clock::now();
  Json found;
  double counted = 0;  // a calibration that fails early says nothing about the pace
  if (limit_ && spent_ + pace() * expected > *limit_) {
    found = {{"error", kNoTimeToCalibrate}};
  } else {
    try {
      found = calibrate();
      counted = expected;
    } catch (const OutOfTime&) {
      found = {{"error", kNoTimeToCalibrate}};
    } catch (const Error& error) {
      if (!is_refusal(error) && error.code() != ErrorCode::kData) throw;
      found = {{"error", error.what()}};
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  count(seconds, counted);
  records_->keep({{"calibrated", what}, {"seconds", seconds}, {"expected", counted}, {"found", found}});
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
  const Method* const found = find_method(method);
  return found != nullptr && found->settings_for_share != nullptr && budget_grid(method).settings({}).size() > 1;
}

std::size_t calibration_passes(const ModelConfig& model, std::string_view method, const BudgetText& text) {
  return max_losses(model, method, {}, text);
}

std::vector<Configuration> compare_calibrated(Decoder& decoder, const CompareGrid& grid, std::string_view method,
                                              const BudgetText& text, CalibrationQueue& queue, double pass_seconds,
                                              const std::function<void(std::size_t, std::size_t)>& progress) {
  const ModelConfig& model = decoder.model().config();
  const Method& of = *find_method(method);
  const auto passes = static_cast<double>(calibration_passes(model, method, text));
  std::vector<Configuration> configurations;
  std::size_t done = 0;
  for (const double budget : grid.budgets) {
    progress(done++, grid.budgets.size());
    const Json found = queue.next(
        {{"method", method}, {"budget", budget}},
        [&] {
          return calibrated_grid_index(decoder, of, grid, text, budget,
                                       [&](std::size_t, std::size_t) { queue.check_time(); });
        },
        passes * pass_seconds);
    if (found.contains("error")) {
      configurations.push_back({.label = std::string(method) + ", calibrated",
                                .method = std::string(method),
                                .budget = budget,
                                .error = found.at("error"),
                                .calibrated = true});
      continue;
    }
    const JsonCursor record(found, "the journal's calibration of " + std::string(method));
    const std::size_t count = budget_grid(method).settings({}).size();
    for (Configuration& one :
         configurations_at(record_size(record.at("grid_index"), 0, count - 1), grid, model, of, budget)) {
      one.calibration_documents = text.measured.size();
      configurations.push_back(std::move(one));
    }
  }
  return configurations;
}

}  // namespace kvs::inline compare
