#include "cli/kvcalibrate/compare_series.h"

#include <algorithm>
#include <array>

#include "calibrate/elitekv/series.h"
#include "calibrate/transform/cost.h"
#include "calibrate/transform/series.h"
#include "cli/common/methods.h"
#include "core/error.h"
#include "states/live_source.h"

namespace kvs {
namespace {

class EliteConfigs final : public ConfigSeries {
 public:
  explicit EliteConfigs(const SeriesInput& input)
      : held_(input.documents.last(std::max<std::size_t>(1, input.documents.size() / 4))),
        fitted_(input.documents.first(input.documents.size() - held_.size())),
        states_(*input.session.decoder, {fitted_.begin(), fitted_.end()}),
        ops_(make_calibration_ops(*input.session.backend)),
        series_(*input.session.source, *input.session.decoder, *ops_, states_, fitted_, held_, input.most) {}

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

std::unique_ptr<ConfigSeries> start_elitekv(const SeriesInput& input) {
  require_method(MethodId::kFactors, input.session.config());
  if (input.documents.size() < 2)
    throw Error(ErrorCode::kUsage, "--calibration-text", "found one document, expected two or more: one held out");
  return std::make_unique<EliteConfigs>(input);
}

double elitekv_passes(const SeriesSize& size, std::size_t budgets) {
  constexpr std::size_t kPasses = 6;  // the search, three pairs on a quarter of the documents each, queries and outputs
  return static_cast<double>(kPasses * size.documents * budgets);
}
double elitekv_coded_values(const SeriesSize&, std::size_t, std::size_t) { return 0; }
double elitekv_memory(const SeriesSize& size) { return elite_series_memory(size.model, size.compute, size.most); }

class TransformConfigs final : public ConfigSeries {
 public:
  TransformConfigs(const SeriesInput& input, TransformRows rows)
      : states_(*input.session.decoder, {input.documents.begin(), input.documents.end()}),
        series_(*input.session.source, *input.session.decoder, states_, input.documents, input.tokens, rows) {}

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
std::unique_ptr<ConfigSeries> start_transform(const SeriesInput& input) {
  return std::make_unique<TransformConfigs>(input, rows);
}

TransformGeometry geometry_of(const SeriesSize& size) { return standard_transform_geometry(size.model, size.tokens); }
double transform_passes(const SeriesSize& size, std::size_t) {
  return transform_passes(geometry_of(size), {size.documents, size.tokens});
}
double transform_coded_values(const SeriesSize& size, std::size_t budgets, std::size_t scored) {
  const TransformGeometry geometry = geometry_of(size);
  TransformText text{size.documents, size.tokens};
  const double first = transform_coded_values(geometry, text);
  text.measured = false;
  return first + static_cast<double>(budgets - 1) * transform_coded_values(geometry, text) +
         static_cast<double>(budgets * scored * geometry.layers.size() * geometry.values());
}
double transform_memory(const SeriesSize& size) {
  return transform_memory(geometry_of(size), {size.documents, size.tokens}, size.model.d_model);
}

constexpr std::array kMethods{
    SeriesMethod{"elitekv", true, start_elitekv, elitekv_passes, elitekv_coded_values, elitekv_memory},
    SeriesMethod{"transform", false, start_transform<TransformRows::kLayer>, transform_passes, transform_coded_values,
                 transform_memory},
    SeriesMethod{"transform-head", false, start_transform<TransformRows::kHead>, transform_passes,
                 transform_coded_values, transform_memory},
};

}  // namespace

std::span<const SeriesMethod> series_methods() { return kMethods; }

}  // namespace kvs
