// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>

#include "calibrate/cache_choice.h"
#include "calibrate/calibration.h"
#include "calibrate/triattention/cache.h"
#include "calibrate/triattention/config_file.h"
#include "calibrate/triattention/query_sums.h"
#include "core/interrupt.h"
#include "model/cache_shape.h"
#include "model/rope_angles.h"
#include "states/live_source.h"

namespace kvs::inline calibrate {
namespace {

using LayerStatistics = std::shared_ptr<const std::vector<QueryStatistics>>;

/// Makes the scores of a layer. They share its statistics.
std::shared_ptr<const FutureScores> scores_of(const LayerStatistics& all, std::size_t layer, const RopeAngles& angles,
                                              std::size_t horizon) {
  const auto found = std::ranges::find(*all, layer, &QueryStatistics::layer);
  return std::make_shared<FutureScores>(std::shared_ptr<const QueryStatistics>(all, &*found), angles.frequencies,
                                        angles.factor, horizon);
}

/// The statistics of every layer, and the parameters of the cache, all of which may be overridden.
class LoadedTriattention final : public LoadedConfig {
 public:
  LoadedTriattention(const Json& config, const std::filesystem::path& path, const ModelConfig& model)
      : statistics_(std::make_shared<const std::vector<QueryStatistics>>(read_statistics(config, path))),
        parameters_(config.at("parameters")),
        shape_(cache_shape(model)) {}

  Json parameters() const override { return parameters_; }
  void check_settings(const Json&, const std::string&) const override {}
  void read(Parameters& parameters) const override { (void)make_cache(kTriattentionMethod, parameters, shape_); }
  std::function<Cache()> caches(Backend&, const ModelConfig& model, Parameters& parameters,
                                std::size_t tokens) const override {
    std::vector<RopeAngles> angles;  // [layer]
    angles.reserve(model.layers());
    for (std::size_t layer = 0; layer < model.layers(); ++layer)
      angles.push_back(model.ropes.empty() ? RopeAngles{} : rope_angles(model.rope(layer), tokens));
    return [statistics = statistics_, given = parameters, shape = shape_, angles = std::move(angles)] {
      Parameters own = given;
      const LayerMaker make = [&](Parameters& of_layer, const CacheLayer& layer) {
        const TriattentionOptions options = triattention_options(of_layer);
        return make_triattention_cache(options, layer.types,
                                       scores_of(statistics, layer.index, angles[layer.index], options.horizon));
      };
      return make_cache(kTriattentionMethod, make, own, shape);
    };
  }
  std::size_t shared_bytes() const noexcept override { return kvs::shared_bytes(*statistics_); }

 private:
  LayerStatistics statistics_;
  Json parameters_;
  CacheShape shape_;
};

std::shared_ptr<const LoadedConfig> load_triattention(const Json& config, const std::filesystem::path& path,
                                                      const ModelSource& source) {
  return std::make_shared<LoadedTriattention>(config, path, source.config());
}

/// One set of statistics, with a cache of the size of each budget.
class TriattentionConfigs final : public ConfigSeries {
 public:
  explicit TriattentionConfigs(const SeriesInput& input)
      : source_(input.source),
        tokens_(input.tokens),
        states_(input.decoder, {input.documents.begin(), input.documents.end()}),
        sums_(input.source.config()) {}

  void write(double share, const std::filesystem::path& file, const Provenance& provenance, bool force,
             const SeriesProgress& progress) override {
    const CacheChoice choice{.method = &kTriattentionMethod,
                             .parameters = {{kTriattentionMethod.settings_for_share(share, tokens_, Json::object()),
                                             "triattention ", ErrorCode::kUsage}}};
    Json parameters = choice.resolved(source_.config());
    for (; summed_ < states_.documents(); ++summed_) {
      progress("queries", summed_, states_.documents());
      check_interrupt();
      sums_.add(states_, summed_);
    }
    (void)write_triattention_config(sums_.statistics(), source_, std::move(parameters), provenance, file, force);
  }

 private:
  const ModelSource& source_;
  std::size_t tokens_;
  LiveSource states_;
  QuerySums sums_;
  std::size_t summed_ = 0;  // documents
};

std::unique_ptr<ConfigSeries> start_triattention(const SeriesInput& input) {
  refuse_obstacle(obstacle_of(kTriattentionMethod, input.source.config()), "kvcalibrate triattention",
                  input.source.config());
  return std::make_unique<TriattentionConfigs>(input);
}

double triattention_passes(const SeriesSize& size, std::size_t) { return static_cast<double>(size.documents); }
double no_coded_values(const SeriesSize&, std::size_t, std::size_t) { return 0; }
double triattention_memory(const SeriesSize& size) {
  double numbers = 0;
  for (const std::size_t layer : size.model.cached_layers()) {
    const AttentionConfig& attention = size.model.layer[layer].attention;
    numbers += 2.0 * static_cast<double>(attention.query_heads * attention.head_dim);
  }
  return numbers * sizeof(double);
}

constexpr SeriesMethod kTriattentionSeries[] = {{.name = "triattention",
                                                 .takes_kv_type = true,
                                                 .priority = 4,
                                                 .start = start_triattention,
                                                 .passes = triattention_passes,
                                                 .coded_values = no_coded_values,
                                                 .memory = triattention_memory}};

}  // namespace

constinit const Calibration kTriattentionCalibration{
    .method = &kTriattentionMethod, .load = load_triattention, .series = kTriattentionSeries};

}  // namespace kvs::inline calibrate
