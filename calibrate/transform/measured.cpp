// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/measured.h"

#include <algorithm>
#include <numeric>

#include "calibrate/transform/caches.h"
#include "eval/cache_quality.h"
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

TransformQuality transform_quality(const TransformCalibration& found, Decoder& decoder,
                                   std::span<const std::vector<std::int32_t>> documents,
                                   const std::function<void(std::size_t)>& done) {
  documents = documents.first(std::min(kTransformMeasured, documents.size()));
  const ModelConfig& model = decoder.model().config();
  const TransformCaches caches(decoder.model().backend(), model, found.layers);
  const Evaluation evaluation =
      evaluate(decoder, documents, {.make = [&] { return caches.make(); }, .compare = true}, done);
  return {documents.size() == 1 ? "the first calibration document"
                                : "the first " + std::to_string(documents.size()) + " calibration documents",
          cache_quality(evaluation, model, documents.front().size())};
}

Json to_json(const TransformQuality& of) {
  const CacheQuality& quality = of.measured;
  const CacheLoss& loss = *quality.loss;
  return {{"text", of.text},
          {"ppl", json_of(quality.ppl)},
          {"nll_mean", quality.nll_mean},
          {"nll_error", quality.nll_error},
          {"errors_over", quality.errors_over},
          {"ratio", to_json(loss.ratio)},
          {"kl", loss.kl},
          {"kl_error", loss.kl_error},
          {"bytes_per_token", quality.bytes_per_token},
          {"ppl_full", json_of(loss.full.ppl)},
          {"nll_full", loss.full.nll_mean}};
}

std::string transform_summary(const TransformCalibration& found, const TransformQuality& quality) {
  const TransformConfig& config = found.config;
  const std::size_t bytes = std::accumulate(config.code_bytes.begin(), config.code_bytes.end(), std::size_t{0});
  return "transform: " + std::to_string(bytes) + " bytes of codes a token in " + std::to_string(config.layers.size()) +
         " layers; " + shared_bytes_text(shared_bytes(found.layers), config.window) + "\n  on " + quality.text + ": " +
         quality_text(quality.measured) + '\n';
}

}  // namespace kvs::inline calibrate
