// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/cost.h"

#include <algorithm>

#include "calibrate/common/measured_quality.h"
#include "calibrate/transform/calibration.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::size_t kSumPasses = 3;
constexpr std::size_t kSides = 2;  // keys and values

std::size_t measured_documents(const TransformText& text) {
  return text.measured ? std::min(kTransformMeasured, text.documents) : 0;
}

}  // namespace

double transform_passes(const TransformGeometry& geometry, const TransformText& text) {
  const std::size_t judged = 2 * std::min(kQualityDocuments, text.documents);  // with and without the caches
  return static_cast<double>(kSumPasses * text.documents + judged +
                             kSides * geometry.layers.size() * measured_documents(text) / 2);
}

double transform_coded_values(const TransformGeometry& geometry, const TransformText& text) {
  const std::size_t iterations = kTransformIterations + (text.measured ? kTransformFirstIterations : 0),
                    rows = iterations * TransformMoments::kSamples * text.documents +
                           kSides * text.tokens * measured_documents(text);
  return static_cast<double>(rows * geometry.values());
}

double transform_memory(const TransformGeometry& geometry, const TransformText& text, std::size_t d_model) {
  const std::size_t streams = measured_documents(text) * text.tokens * d_model;
  std::size_t bytes = 0;
  for (const TransformHeads& heads : geometry.heads) {
    const std::size_t grams = 2 * heads.query_heads * heads.square(),
                      samples = TransformMoments::kSamples * text.documents * heads.values();
    bytes += sizeof(double) * (grams + samples) + sizeof(float) * (samples + streams);
  }
  const std::size_t inputs = geometry.inputs == 0 ? 0 : geometry.inputs + 1,
                    samples = TransformMoments::kSamples * text.documents * inputs;
  // Sums; a prediction's map: in double for all layers and by group, for the config, and in use.
  bytes += sizeof(double) * (inputs * inputs + samples) +
           (3 * sizeof(double) + 2 * sizeof(float)) * inputs * geometry.values();
  for (const LayerGroup& group : geometry.groups) {
    const std::size_t square = geometry.values(group) * geometry.values(group);
    // Sums; analysis and synthesis: in double, for the config, and in use.
    bytes += (sizeof(double) + (2 * sizeof(double) + 2 * sizeof(float)) * 2) * square;
  }
  return static_cast<double>(bytes);
}

}  // namespace kvs::inline calibrate
