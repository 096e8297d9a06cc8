// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/series.h"

#include <string>

#include "calibrate/transform/config_file.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "eval/cache_quality.h"

namespace kvs::inline calibrate {

TransformSeries::TransformSeries(const ModelSource& source, Decoder& decoder, StateSource& states,
                                 std::span<const std::vector<std::int32_t>> documents, std::size_t tokens,
                                 TransformRows rows)
    : source_(source),
      decoder_(decoder),
      states_(states),
      documents_(documents),
      plan_{.tokens = tokens, .outliers = transform_outliers(rows), .rows = rows},
      moments_(transform_moments(source, standard_transform_geometry(source.config(), tokens))) {}

Json TransformSeries::measured() const {
  if (plan_.scales.empty()) return nullptr;
  Json scales = Json::array();
  for (const TransformScales& scale : plan_.scales) scales.push_back({scale.keys, scale.values});
  return scales;
}

void TransformSeries::restore(const JsonCursor& measured) {
  plan_.scales.clear();
  if (measured.is_null()) return;
  const std::size_t layers = moments_.geometry().layers.size();
  if (measured.array_size() != layers) measured.fail("a pair for each of " + std::to_string(layers) + " layers");
  for (std::size_t n = 0; n < layers; ++n)
    plan_.scales.push_back({measured.at(n).at(std::size_t{0}).real(), measured.at(n).at(std::size_t{1}).real()});
}

void TransformSeries::sum(const TransformProgress& progress) {
  if (summed_) return;
  for (std::size_t n = 0; n < documents_.size(); ++n) {
    progress("moments", n, documents_.size());
    check_interrupt();
    moments_.add(states_, n);
  }
  summed_ = true;
}

void TransformSeries::write(double share, const std::filesystem::path& file, const Provenance& provenance, bool force,
                            const TransformProgress& progress) {
  const ModelConfig& model = source_.config();
  plan_.bytes = static_cast<std::size_t>(share * full_cache_bytes(model, plan_.tokens));
  if (plan_.bytes < min_transform_bytes(model, moments_.geometry(), plan_))
    throw Error(ErrorCode::kUsage, "transform", "needs more for gains, sinks, outliers and tokens that wait");
  sum(progress);
  const TransformCalibration found = calibrate_transform(decoder_, moments_, documents_, plan_, progress);
  plan_.scales = found.config.scales;
  (void)write_transform_config(found, source_, provenance, file, force);
}

}  // namespace kvs::inline calibrate
