// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>

#include "calibrate/calibration.h"
#include "calibrate/elitekv/caches.h"
#include "calibrate/elitekv/config.h"
#include "calibrate/elitekv/obstacles.h"
#include "calibrate/elitekv/series.h"
#include "calibrate/method.h"
#include "core/error.h"
#include "states/live_source.h"

namespace kvs::inline calibrate {
namespace {

/// Elite rows and the latent of every layer, and how they are stored.
class LoadedElite final : public LoadedConfig {
 public:
  LoadedElite(const Json& config, const std::filesystem::path& path, const ModelSource& source)
      : layers_(load_elite_config(config, path, source)), parameters_(elite_row_parameters(config)) {}

  Json parameters() const override { return parameters_; }
  /// The calibration fixes the layers: here `layers` can only select those to which `type` applies.
  void check_settings(const Json& settings, const std::string& option) const override {
    if (settings.contains("layers") && settings.size() == 1)
      throw Error(ErrorCode::kUsage, option + " layers",
                  "needs " + option + " type=TYPE with a --config of " + std::string(kElitekvMethod.name));
  }
  void read(Parameters& parameters) const override { (void)read_elite_stores(parameters); }
  std::function<Cache()> caches(Backend& backend, const ModelConfig& model, Parameters& parameters,
                                std::size_t tokens) const override {
    const auto caches = std::make_shared<EliteCaches>(backend, model, layers_, tokens);
    return [caches, stores = read_elite_stores(parameters)] { return caches->make(stores); };
  }

 private:
  std::vector<EliteLayer> layers_;
  Json parameters_;
};

std::shared_ptr<const LoadedConfig> load_elitekv(const Json& config, const std::filesystem::path& path,
                                                 const ModelSource& source) {
  refuse_obstacle(ropelite_obstacle(source.config()), "kvcalibrate eval --config", source.config());
  if (!config.at("files").empty())
    refuse_obstacle(factor_obstacle(source.config()), "kvcalibrate elitekv --rank", source.config());
  return std::make_shared<LoadedElite>(config, path, source);
}

/// EliteSeries on three quarters of the documents; the last quarter is held out.
class EliteConfigs final : public ConfigSeries {
 public:
  explicit EliteConfigs(const SeriesInput& input)
      : held_(input.documents.last(std::max<std::size_t>(1, input.documents.size() / 4))),
        fitted_(input.documents.first(input.documents.size() - held_.size())),
        states_(input.decoder, {fitted_.begin(), fitted_.end()}),
        ops_(make_calibration_ops(input.backend)),
        series_(input.source, input.decoder, *ops_, states_, fitted_, held_, input.max_share) {}

  void write(double share, const std::filesystem::path& file, const Provenance& provenance, bool force,
             const SeriesProgress& progress) override {
    series_.write(share, file, provenance, force, progress);
  }

 private:
  std::span<const std::vector<std::int32_t>> held_, fitted_;
  LiveSource states_;
  std::unique_ptr<CalibrationOps> ops_;
  EliteSeries series_;
};

std::unique_ptr<ConfigSeries> start_series(const SeriesInput& input) {
  refuse_obstacle(ropelite_obstacle(input.source.config()), "kvcalibrate elitekv", input.source.config());
  refuse_obstacle(factor_obstacle(input.source.config()), "kvcalibrate elitekv --rank", input.source.config());
  if (input.documents.size() < 2)
    throw Error(ErrorCode::kUsage, "--calibration-text", "found one document, expected two or more: one held out");
  return std::make_unique<EliteConfigs>(input);
}

double series_passes(const SeriesSize& size, std::size_t budgets) {
  constexpr std::size_t kPasses = 6;  // the search, three pairs on a quarter of the documents each, queries and outputs
  return static_cast<double>(kPasses * size.documents * budgets);
}
double series_coded_values(const SeriesSize&, std::size_t, std::size_t) { return 0; }
double series_memory(const SeriesSize& size) { return elite_series_memory(size.model, size.compute, size.max_share); }

constexpr SeriesMethod kSeries[] = {{.name = "elitekv",
                                     .takes_kv_type = true,
                                     .priority = 6,
                                     .start = start_series,
                                     .passes = series_passes,
                                     .coded_values = series_coded_values,
                                     .memory = series_memory}};

}  // namespace

constinit const Calibration kElitekvCalibration{.method = &kElitekvMethod, .load = load_elitekv, .series = kSeries};

}  // namespace kvs::inline calibrate
