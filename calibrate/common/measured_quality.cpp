// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/measured_quality.h"

#include <algorithm>

#include "eval/cache_quality.h"
#include "eval/evaluation.h"

namespace kvs::inline calibrate {

MeasuredQuality measured_quality(const std::function<Cache()>& make, Decoder& decoder,
                                 std::span<const std::vector<std::int32_t>> documents,
                                 const std::function<void(std::size_t)>& done) {
  documents = documents.first(std::min(kQualityDocuments, documents.size()));
  const Evaluation evaluation = evaluate(decoder, documents, {.make = make, .compare = true}, done);
  return {documents.size() == 1 ? "the first calibration document"
                                : "the first " + std::to_string(documents.size()) + " calibration documents",
          cache_quality(evaluation, decoder.model().config(), documents.front().size())};
}

Json to_json(const MeasuredQuality& of) {
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

std::string summary_line(const MeasuredQuality& quality) {
  return "  on " + quality.text + ": " + quality_text(quality.measured) + '\n';
}

}  // namespace kvs::inline calibrate
