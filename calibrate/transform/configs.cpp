// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>

#include "calibrate/calibration.h"
#include "calibrate/transform/caches.h"
#include "calibrate/transform/config.h"
#include "calibrate/transform/cost.h"
#include "calibrate/transform/series.h"
#include "core/error.h"
#include "states/live_source.h"

namespace kvs::inline calibrate {
namespace {

class LoadedTransform final : public LoadedConfig {
 public:
  explicit LoadedTransform(std::vector<TransformLayer> layers) : layers_(std::move(layers)) {}

  void check_settings(const Json& settings, const std::string& option) const override {
    if (!settings.empty())
      throw Error(ErrorCode::kUsage, option + ' ' + settings.items().begin().key(),
                  "cannot be combined with a --config of " + std::string(kTransformMethod.name));
  }
  void read(Parameters&) const override {}
  std::function<Cache()> caches(Backend& backend, const ModelConfig& model, Parameters&, std::size_t) const override {
    const auto caches = std::make_shared<TransformCaches>(backend, model, layers_);
    return [caches] { return caches->make(); };
  }
  CacheForm form(CacheForm of_method) const noexcept override {
    if (layers_.front().form() == TransformForm::kStorage) return CacheForm::kStorage;
    return layers_.front().rows == TransformRows::kHead ? CacheForm::kInAttention : of_method;
  }
  std::string package_obstacle() const override {
    const auto is_new = [](const TransformLayer& layer) {
      return !layer.others.empty() || !layer.prediction.empty() || layer.form() == TransformForm::kStorage;
    };
    return std::ranges::any_of(layers_, is_new) ? "found rows of several layers, predicted rows or the storage form, "
                                                  "expected a row of each layer as it is"
                                                : "";
  }
  std::size_t shared_bytes() const noexcept override { return kvs::shared_bytes(layers_); }

 private:
  std::vector<TransformLayer> layers_;
};

std::shared_ptr<const LoadedConfig> load_transform(const Json& config, const std::filesystem::path& path,
                                                   const ModelSource&) {
  return std::make_shared<LoadedTransform>(read_transform_layers(config, path));
}

class TransformConfigs final : public ConfigSeries {
 public:
  TransformConfigs(const SeriesInput& input, TransformRows rows)
      : states_(input.decoder, {input.documents.begin(), input.documents.end()}),
        series_(input.source, input.decoder, states_, input.documents, input.tokens, rows) {}

  void write(double share, const std::filesystem::path& file, const Provenance& provenance, bool force,
             const SeriesProgress& progress) override {
    series_.write(share, file, provenance, force, progress);
  }
  Json measured() const override { return series_.measured(); }
  void restore(const JsonCursor& measured) override { series_.restore(measured); }

 private:
  LiveSource states_;
  TransformSeries series_;
};

template <TransformRows rows>
std::unique_ptr<ConfigSeries> start_series(const SeriesInput& input) {
  refuse_obstacle(kTransformMethod.obstacle(input.source.config()), "kvcalibrate transform", input.source.config());
  return std::make_unique<TransformConfigs>(input, rows);
}

TransformGeometry geometry_of(const SeriesSize& size) { return standard_transform_geometry(size.model, size.tokens); }
double series_passes(const SeriesSize& size, std::size_t) {
  return transform_passes(geometry_of(size), {size.documents, size.tokens});
}
double series_coded_values(const SeriesSize& size, std::size_t budgets, std::size_t scored) {
  const TransformGeometry geometry = geometry_of(size);
  TransformText text{size.documents, size.tokens};
  const double first = transform_coded_values(geometry, text);
  text.measured = false;
  return first + static_cast<double>(budgets - 1) * transform_coded_values(geometry, text) +
         static_cast<double>(budgets * scored * geometry.values());
}
double series_memory(const SeriesSize& size) {
  return transform_memory(geometry_of(size), {size.documents, size.tokens}, size.model.d_model);
}

constexpr SeriesMethod series_of(std::string_view name, int priority,
                                 std::unique_ptr<ConfigSeries> (*start)(const SeriesInput& input)) {
  return {.name = name,
          .takes_kv_type = false,
          .priority = priority,
          .start = start,
          .passes = series_passes,
          .coded_values = series_coded_values,
          .memory = series_memory};
}
constexpr SeriesMethod kSeries[] = {series_of("transform", 1, start_series<TransformRows::kLayer>),
                                    series_of("transform-head", 5, start_series<TransformRows::kHead>)};

}  // namespace

constinit const Calibration kTransformCalibration{
    .method = &kTransformMethod, .load = load_transform, .series = kSeries};

}  // namespace kvs::inline calibrate
