#include "cli/kvcalibrate/compare_series.h"

#include <algorithm>
#include <array>

#include "capture/live_source.h"
#include "cli/common/methods.h"
#include "core/error.h"
#include "eval/elitekv/series.h"
#include "eval/transform/series.h"

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

double elitekv_passes(const ModelConfig&, std::size_t documents, std::size_t budgets) {
  constexpr std::size_t kPasses = 6;  // the search, three pairs on a quarter of the documents each, queries and outputs
  return static_cast<double>(kPasses * documents * budgets);
}

class TransformConfigs final : public ConfigSeries {
 public:
  explicit TransformConfigs(const SeriesInput& input)
      : states_(*input.session.decoder, {input.documents.begin(), input.documents.end()}),
        series_(*input.session.source, *input.session.decoder, states_, input.documents, input.tokens) {}

  void write(double share, const std::filesystem::path& file, const Provenance& provenance, bool force,
             const SeriesProgress& progress) override {
    series_.write(share, file, provenance, force, progress);
  }

 private:
  LiveSource states_;
  TransformSeries series_;
};

double transform_passes(const ModelConfig& model, std::size_t documents, std::size_t) {
  constexpr std::size_t kSums = 3, kCosts = 2;  // of all documents; of each layer's keys and values
  return static_cast<double>(kSums * documents + kCosts * model.layers);
}

constexpr std::array kMethods{
    SeriesMethod{"elitekv", true, start_elitekv, elitekv_passes},
    SeriesMethod{"transform", false,
                 [](const SeriesInput& input) -> std::unique_ptr<ConfigSeries> {
                   return std::make_unique<TransformConfigs>(input);
                 },
                 transform_passes},
};

}  // namespace

std::span<const SeriesMethod> series_methods() { return kMethods; }

}  // namespace kvs
