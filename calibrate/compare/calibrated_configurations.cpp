// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/calibrated_configurations.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "calibrate/budget/calibration.h"
#include "calibrate/compare/calibration.h"
#include "calibrate/compare/configurations.h"
#include "core/error.h"
#include "eval/cache_quality.h"
#include "io/digest.h"
#include "run/progress.h"
#include "run/text_input.h"

namespace kvs::inline compare {
namespace {

/// Predicts the seconds that calibrations take.
class Rates {
 public:
  /// @param limited  whether there is a time limit
  Rates(const ModelConfig& model, std::size_t tokens, Backend& backend, bool limited)
      : pass_(limited ? expected_seconds({.flops = forward_flops(model, static_cast<double>(tokens))}, backend) : 0),
        coded_(limited ? expected_seconds({.coded_values = 1}, backend) : 0) {}

  double pass() const noexcept { return pass_; }
  double of(double passes, double coded) const noexcept { return passes * pass_ + coded * coded_; }
  /// Returns the seconds for a series at `budgets` budgets.
  double of(const SeriesMethod& method, const SeriesSize& size, std::size_t budgets) const {
    return budgets == 0 ? 0 : of(method.passes(size, budgets), method.coded_values(size, budgets, 0));
  }

 private:
  double pass_, coded_;
};

/// Evenly spaced documents of a text.
struct CalibrationText {
  CalibrationText(Decoder& decoder, const Corpus& all, std::size_t count) {
    const std::size_t documents = all.documents.size();
    for (std::size_t n = 0; n < count; ++n)
      corpus.documents.push_back(all.documents[(2 * n + 1) * documents / (2 * count)]);
    corpus.text_sha256 = all.text_sha256;
    tokens = tokens_of(corpus);
    in_turn = documents_in_turn(corpus);
    for (const auto& document : in_turn) full.push_back(std::make_shared<FullPass>(decoder, document));
  }

  Corpus corpus;
  std::vector<std::vector<std::int32_t>> tokens, in_turn;  // in_turn: the texts take turns
  std::vector<std::shared_ptr<FullPass>> full;             // of in_turn
};

SeriesSize series_size(const ModelSession& session, const CompareGrid& grid, std::size_t documents,
                       std::size_t tokens) {
  return {session.config(), session.backend->compute_type(), documents, tokens, std::ranges::max(grid.budgets)};
}

std::string budgets_text(std::span<const double> budgets) {
  std::string text;
  for (const double budget : budgets) text += (text.empty() ? "" : ", ") + percent_text(budget) + " %";
  return text;
}

class Calibrations {
 public:
  Calibrations(const CalibrationPlan& plan, const RunOptions& run, const ModelSession& session, const CompareGrid& grid,
               const Corpus& corpus, RunRecords& records, std::optional<double> max_seconds)
      : plan_(plan),
        run_(run),
        session_(session),
        grid_(grid),
        corpus_(corpus),
        queue_(records, max_seconds),
        tokens_(corpus.documents.front().tokens.size()),
        rates_(session.config(), tokens_, *session.backend, max_seconds.has_value()) {
    std::ranges::sort(grid_.budgets);  // small budgets first: calibration gains most there
  }

  CalibratedConfigurations made() {
    std::vector<CalibratedMethod> methods = all_methods();
    std::ranges::stable_sort(methods, {}, &CalibratedMethod::priority);
    for (std::size_t n = 0; n < methods.size(); ++n) calibrate(methods[n], methods.size() - n);
    made_.seconds = queue_.seconds();
    return std::move(made_);
  }

 private:
  struct CalibratedMethod {
    std::string name;
    const SeriesMethod* series;  // nullptr: its settings are calibrated

    int priority() const { return series != nullptr ? series->priority : budget_grid(name).priority; }
  };

  std::vector<CalibratedMethod> all_methods() const {
    std::vector<CalibratedMethod> methods;
    for (const SeriesMethod* const series : plan_.series) methods.push_back({std::string(series->name), series});
    for (const std::string& name : grid_.methods)
      if (is_calibrated(name)) methods.push_back({name, nullptr});
    return methods;
  }

  void calibrate(const CalibratedMethod& method, std::size_t waiting) {
    const std::size_t all = corpus_.documents.size();
    const std::size_t count =
        queue_.documents(method.name, all, waiting, [&](std::size_t n) { return seconds(method, n); });
    auto& text = texts_[count];
    if (!text) text = std::make_unique<CalibrationText>(*session_.decoder, corpus_, count);
    std::vector<Configuration> configurations = method.series != nullptr ? series_configurations(*method.series, *text)
                                                                         : settings_configurations(method.name, *text);
    std::vector<double> left;
    for (Configuration& one : configurations) {
      if (one.error == kNoTimeToCalibrate) left.push_back(one.budget);
      if (one.calibration_documents > 0) made_.methods[method.name] = one.calibration_documents;
      made_.configurations.push_back(std::move(one));
    }
    if (made_.methods.contains(method.name) && count < all)
      print_note("note: " + method.name + " is calibrated on " + std::to_string(count) + " of " + std::to_string(all) +
                     " documents, as the time allows",
                 run_.quiet);
    if (!left.empty())
      print_note("note: no time is left to calibrate " + method.name + " to " + budgets_text(left), run_.quiet);
  }

  /// Returns the seconds that all calibrations of a method take on `documents` documents.
  double seconds(const CalibratedMethod& method, std::size_t documents) const {
    if (method.series != nullptr)
      return rates_.of(*method.series, series_size(session_, grid_, documents, tokens_), grid_.budgets.size());
    const std::vector<std::vector<std::int32_t>> counted(documents, corpus_.documents.front().tokens);
    const std::size_t passes = calibration_passes(session_.config(), method.name, {counted, {}});
    return rates_.of(static_cast<double>(grid_.budgets.size() * passes), 0);
  }

  /// Returns a configuration for each budget of a method: with its config, or with the reason why it has no config.
  std::vector<Configuration> series_configurations(const SeriesMethod& method, const CalibrationText& text) {
    const std::string name(method.name);
    const SeriesInput input{*session_.source, *session_.decoder, *session_.backend,
                            text.tokens,      grid_.tokens,      grid_.budgets.back()};
    const SeriesSize size = series_size(session_, grid_, text.tokens.size(), tokens_);
    const Provenance record = plan_.provenance(text.corpus);
    std::unique_ptr<ConfigSeries> series;
    std::vector<Configuration> configurations;
    Json measured;
    std::size_t made = 0;
    for (const double budget : grid_.budgets) {
      const std::filesystem::path file = plan_.config(name, budget);
      const auto calibrate = [&]() -> Json {
        if (!series) {
          series = method.start(input);
          series->restore(JsonCursor(measured, "what " + name + " measured"));
        }
        try {
          write(*series, name, budget, file, record);
        } catch (...) {
          series.reset();  // its sums may hold half a pass: the next budget starts afresh, like a resumed run
          throw;
        }
        return {{"sha256", sha256_of_file(file)}, {"measured", series->measured()}};
      };
      const double expected = rates_.of(method, size, made + 1) - rates_.of(method, size, made);
      const Json found = queue_.next({{"method", name}, {"budget", budget}}, calibrate, expected);
      if (found.contains("error")) {
        configurations.push_back(
            {.label = name, .method = name, .budget = budget, .error = found.at("error"), .calibrated = true});
        continue;
      }
      if (!std::filesystem::exists(file) || sha256_of_file(file) != found.at("sha256"))
        throw Error(ErrorCode::kConflict, file.string(),
                    "is not the file that the earlier run wrote; expected that file, or --force");
      measured = found.at("measured");
      ++made;
      const std::vector<std::string> config{file.string()};
      for (Configuration& one : file_configurations(config, grid_, *session_.source)) {
        one.budget = budget;
        one.calibration_documents = text.tokens.size();
        configurations.push_back(std::move(one));
      }
    }
    return configurations;
  }

  void write(ConfigSeries& series, const std::string& name, double budget, const std::filesystem::path& file,
             const Provenance& record) const {
    std::optional<Progress> progress;
    std::string_view current;
    series.write(budget, file, record, run_.replace(), [&](std::string_view step, std::size_t done, std::size_t total) {
      if (step != current)
        progress.emplace("compare: " + name + ' ' + std::string(step), static_cast<double>(total), run_.quiet);
      current = step;
      progress->update(static_cast<double>(done));
      queue_.check_time();
    });
  }

  std::vector<Configuration> settings_configurations(const std::string& name, const CalibrationText& text) {
    std::optional<Progress> progress;
    const auto done = [&](std::size_t count, std::size_t all) {
      if (!progress) progress.emplace("compare: calibrating " + name, static_cast<double>(all), run_.quiet);
      progress->update(static_cast<double>(count));
    };
    return compare_calibrated(*session_.decoder, grid_, name, {text.in_turn, {}, text.full}, queue_, rates_.pass(),
                              done);
  }

  const CalibrationPlan& plan_;
  const RunOptions& run_;
  const ModelSession& session_;
  CompareGrid grid_;  // budgets are ascending
  const Corpus& corpus_;
  CalibrationQueue queue_;
  std::size_t tokens_;  // per document of the corpus
  Rates rates_;
  std::map<std::size_t, std::unique_ptr<CalibrationText>> texts_;  // by number of documents
  CalibratedConfigurations made_;
};

}  // namespace

std::string percent_text(double share) {
  char percent[32];
  std::snprintf(percent, sizeof percent, "%.4g", 100 * share);
  return percent;
}

std::string share_file(const std::string& name, double share) { return name + '_' + percent_text(share) + ".json"; }

std::filesystem::path CalibrationPlan::config(std::string_view name, double share) const {
  return folder / share_file(std::string(name), share);
}

CalibratedConfigurations calibrated_configurations(const CalibrationPlan& plan, const RunOptions& run,
                                                   const ModelSession& session, const CompareGrid& grid,
                                                   const Corpus& corpus, RunRecords& records,
                                                   std::optional<double> max_seconds) {
  return Calibrations(plan, run, session, grid, corpus, records, max_seconds).made();
}

std::size_t max_calibrated_configurations(const CalibrationPlan& plan, const CompareGrid& grid) {
  std::size_t configurations = 0;
  for (const SeriesMethod* const method : plan.series)
    configurations += 1 + (method->takes_kv_type ? grid.composed.size() : 0);
  for (const std::string& method : grid.methods)
    if (is_calibrated(method)) configurations += kv_types_of(grid, *find_method(method)).size();
  return configurations * grid.budgets.size();
}

Estimate calibration_estimate(const CalibrationPlan& plan, const ModelSession& session, const CompareGrid& grid,
                              const Corpus& corpus, std::size_t scored) {
  const ModelConfig& model = session.config();
  const auto documents = tokens_of(corpus);
  const std::size_t tokens = documents.front().size();
  const SeriesSize size = series_size(session, grid, documents.size(), tokens);
  double passes = 0, coded = 0, most = 0;
  for (const SeriesMethod* const method : plan.series) {
    passes += method->passes(size, grid.budgets.size());
    coded += method->coded_values(size, grid.budgets.size(), scored);
    most = std::max(most, method->memory(size));
  }
  for (const std::string& method : grid.methods)
    if (is_calibrated(method)) {
      passes += static_cast<double>(grid.budgets.size() * calibration_passes(model, method, {documents, {}}));
      const auto streams = static_cast<double>(sizeof(float) * documents.size() * tokens * model.d_model);
      most = std::max(most, streams + 4 * full_cache_bytes(model, tokens));
    }
  return {.flops = passes * forward_flops(model, static_cast<double>(tokens)),
          .memory_bytes = session_memory(session, tokens) + most,
          .coded_values = coded};
}

}  // namespace kvs::inline compare
