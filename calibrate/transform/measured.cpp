// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/measured.h"

#include <algorithm>
#include <numeric>

#include "io/record.h"
#include "states/document_sums.h"

namespace kvs::inline calibrate {
namespace {

std::vector<TransformScales> losses_from(const JsonCursor& pairs, std::size_t layers) {
  if (pairs.array_size() > layers) pairs.fail("at most " + std::to_string(layers) + " pairs");
  std::vector<TransformScales> losses;
  for (std::size_t n = 0; n < pairs.array_size(); ++n) {
    const std::vector<double> pair = record_reals(pairs.at(n), 2);
    losses.push_back({pair[0], pair[1]});
  }
  return losses;
}

}  // namespace

std::vector<TransformScales> sum_documents(TransformMoments& moments, StateSource& source,
                                           const std::optional<Checkpoint::State>& saved, Checkpoint& checkpoint,
                                           const std::string& where, const std::function<void(std::size_t)>& done) {
  std::vector<TransformScales> losses;
  if (saved) {
    moments.restore(saved->sums);
    if (saved->extra.is_array())
      losses = losses_from(JsonCursor(saved->extra, where), moments.geometry().layers.size());
  }
  add_documents(moments, source, saved ? saved->documents : 0, checkpoint, done);
  return losses;
}

TransformCalibration calibrate_transform(Decoder& decoder, const TransformMoments& moments,
                                         std::span<const std::vector<std::int32_t>> documents,
                                         const TransformPlan& plan, const TransformProgress& progress,
                                         Checkpoint& checkpoint) {
  return calibrate_transform(decoder, moments, documents, plan, progress, [&](std::span<const TransformScales> losses) {
    if (!checkpoint.due()) return;
    Json pairs = Json::array();
    for (const TransformScales& loss : losses) pairs.push_back({loss.keys, loss.values});
    checkpoint.save(documents.size(), moments.state(), pairs);
  });
}

std::string transform_summary(const TransformCalibration& found, const MeasuredQuality& quality) {
  const TransformConfig& config = found.config;
  const std::size_t bytes = std::accumulate(config.code_bytes.begin(), config.code_bytes.end(), std::size_t{0});
  return "transform: " + std::to_string(bytes) + " bytes of codes a token in " + std::to_string(config.layers.size()) +
         " layers; " + shared_bytes_text(shared_bytes(found.layers), config.window) + '\n' + summary_line(quality);
}

}  // namespace kvs::inline calibrate
