#include "eval/transform/calibration.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "calibrate/transform/bits.h"
#include "calibrate/transform/books.h"
#include "core/interrupt.h"
#include "eval/transform/sensitivity.h"

namespace kvs {
namespace {

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::size_t kMeasuredBits = 2;  // a number, when costs are measured

Eigen::Index index(std::size_t n) { return static_cast<Eigen::Index>(n); }

/// Everything about the layers that the steps pass on.
struct Coder {
  std::vector<TransformBasis> bases;
  std::vector<std::vector<std::size_t>> bits;
  std::vector<double> thresholds;
};

/// The calibration's rows as coefficients.
TrellisSamples samples_of(const TransformMoments& moments, std::size_t n, const TransformBasis& basis,
                          const std::vector<std::size_t>& bits) {
  const std::vector<float> rows = moments.samples(n);
  const std::size_t values = bits.size(), count = rows.size() / values;
  using FloatRows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const FloatRows> x(rows.data(), index(count), index(values));
  const Eigen::Map<const Rows> analysis(basis.analysis.data(), index(values), index(values));
  const Eigen::Map<const Eigen::RowVectorXd> mean(basis.mean.data(), index(values));
  const FloatRows coefficients = ((x.cast<double>().rowwise() - mean) * analysis.transpose()).cast<float>();
  return {{coefficients.data(), coefficients.data() + coefficients.size()}, bits, basis.variances};
}

void fit_books(const TransformMoments& moments, const TransformPlan& plan, std::size_t iterations, Coder& coder,
               TrellisBooks& books, const TransformProgress& progress) {
  std::vector<TrellisSamples> samples;
  for (std::size_t n = 0; n < coder.bases.size(); ++n)
    samples.push_back(samples_of(moments, n, coder.bases[n], coder.bits[n]));
  for (std::size_t iteration = 0; iteration < iterations; ++iteration) {
    coder.thresholds = books.fit(samples, plan.outliers, [&](std::size_t layer) {
      check_interrupt();
      progress("books", iteration * samples.size() + layer, iterations * samples.size());
    });
  }
}

std::vector<TransformLayer> layers_of(const TransformGeometry& geometry, const TransformPlan& plan, const Coder& coder,
                                      const TrellisBooks& books) {
  std::vector<TransformLayer> layers;
  for (std::size_t n = 0; n < coder.bases.size(); ++n) {
    const TransformBasis& basis = coder.bases[n];
    const std::size_t values = basis.mean.size();
    TransformLayer& layer = layers.emplace_back();
    layer.layer = geometry.layers[n];
    layer.mean.assign(basis.mean.begin(), basis.mean.end());
    layer.analysis.assign(basis.analysis.begin(), basis.analysis.end());
    for (std::size_t at = 0; at < values * values; ++at)
      layer.synthesis.push_back(static_cast<float>(basis.synthesis[at % values * values + at / values]));
    layer.bits = coder.bits[n];
    for (const double variance : basis.variances)
      layer.weights.push_back(static_cast<float>(variance / basis.variances.front()));
    layer.threshold = static_cast<float>(coder.thresholds[n]);
    layer.outliers = plan.outliers;
    layer.books = books.books();
    layer.sinks = geometry.sinks;
  }
  return layers;
}

std::vector<TransformBasis> bases_of(CalibrationOps& ops, const TransformMoments& moments,
                                     const std::vector<TransformScales>& scales, const TransformProgress& progress) {
  std::vector<TransformBasis> bases;
  for (std::size_t n = 0; n < scales.size(); ++n) {
    progress("bases", n, scales.size());
    check_interrupt();
    bases.push_back(transform_basis(ops, moments, n, scales[n]));
  }
  return bases;
}

/// Some documents, evenly spaced.
std::vector<std::vector<std::int32_t>> measured_documents(std::span<const std::vector<std::int32_t>> all) {
  std::vector<std::vector<std::int32_t>> chosen;
  const std::size_t count = std::min(kTransformMeasured, all.size());
  for (std::size_t n = 0; n < count; ++n) chosen.push_back(all[(2 * n + 1) * all.size() / (2 * count)]);
  return chosen;
}

/// What the estimate says of keys and of values of a layer that is coded with these bits.
TransformScales estimated(const TransformBasis& basis, const std::vector<std::size_t>& bits) {
  TransformScales costs{0, 0};
  for (std::size_t n = 0; n < bits.size(); ++n) {
    const double cost = basis.variances[n] * kTrellisError[bits[n]];
    costs.keys += basis.key_shares[n] * cost;
    costs.values += (1 - basis.key_shares[n]) * cost;
  }
  return costs;
}

std::vector<std::vector<double>> variances_of(const std::vector<TransformBasis>& bases) {
  std::vector<std::vector<double>> variances;
  variances.reserve(bases.size());
  for (const TransformBasis& basis : bases) variances.push_back(basis.variances);
  return variances;
}

}  // namespace

TransformGeometry transform_geometry(const ModelConfig& model, std::size_t sinks) {
  TransformGeometry geometry{{}, model.query_heads, model.kv_heads, model.head_dim, sinks};
  for (std::size_t layer = 0; layer < model.layers; ++layer)
    if (model.window(layer) == 0) geometry.layers.push_back(layer);
  return geometry;
}

TransformMoments transform_moments(const ModelSource& source, const TransformGeometry& geometry) {
  const ModelConfig& model = source.config();
  const std::size_t heads = geometry.query_heads, head_dim = geometry.head_dim;
  std::vector<ScoreRule> rules;
  std::vector<std::vector<double>> outputs;
  for (const std::size_t layer : geometry.layers) {
    rules.push_back({model.score_scale(), model.attention_softcap, model.window(layer)});
    const std::vector<float> rows = source.projection(layer, 'o');  // [d_model, query_head · head_dim]
    std::vector<double>& grams = outputs.emplace_back(heads * head_dim * head_dim);
    const Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> output(
        rows.data(), index(model.d_model), index(heads * head_dim));
    for (std::size_t head = 0; head < heads; ++head) {
      const Rows part = output.middleCols(index(head * head_dim), index(head_dim)).cast<double>();
      Eigen::Map<Rows>(&grams[head * head_dim * head_dim], index(head_dim), index(head_dim)) = part.transpose() * part;
    }
  }
  return {geometry, std::move(rules), std::move(outputs)};
}

std::size_t least_transform_bytes(const ModelConfig& model, const TransformGeometry& geometry,
                                  const TransformPlan& plan) {
  constexpr std::size_t kGain = 2;
  const std::size_t row = geometry.values() * CacheBytes::kStoredValue, coded = plan.tokens - geometry.sinks;
  // Their share, and those that come before the threshold has risen enough.
  const auto outliers = kMoreOutliers + static_cast<std::size_t>(plan.outliers * static_cast<double>(coded));
  std::size_t bytes = geometry.layers.size() * (geometry.sinks * row + coded * kGain +
                                                outliers * outlier_bytes({geometry.kv_heads, geometry.head_dim}));
  for (std::size_t layer = 0; layer < model.layers; ++layer)
    if (!std::ranges::binary_search(geometry.layers, layer))
      bytes += row * (model.window(layer) > 0 ? std::min(model.window(layer), plan.tokens) : plan.tokens);
  return bytes;
}

TransformCalibration calibrate_transform(Decoder& decoder, const TransformMoments& moments,
                                         std::span<const std::vector<std::int32_t>> documents,
                                         const TransformPlan& plan, const TransformProgress& progress) {
  const TransformGeometry& geometry = moments.geometry();
  const std::size_t layers = geometry.layers.size(),
                    bytes = (plan.bytes - least_transform_bytes(decoder.model().config(), geometry, plan)) /
                            (plan.tokens - geometry.sinks);  // of a token's codes
  Backend& backend = decoder.model().backend();
  const auto ops = make_calibration_ops(backend);
  TrellisBooks books(backend);
  std::vector<TransformScales> scales = plan.scales;
  Coder coder;
  if (scales.empty()) {
    scales.resize(layers);
    coder.bases = bases_of(*ops, moments, scales, progress);
    for (const std::vector<double>& variances : variances_of(coder.bases))
      coder.bits.push_back(allocate_bits({&variances, 1}, kMeasuredBits * geometry.values() / 8).front());
    fit_books(moments, plan, kTransformFirstIterations, coder, books, progress);
    const std::vector<TransformScales> losses =
        coding_losses(decoder, measured_documents(documents), layers_of(geometry, plan, coder, books),
                      [&](std::size_t n) { progress("costs", n, layers); });
    for (std::size_t n = 0; n < layers; ++n) {
      const TransformScales expected = estimated(coder.bases[n], coder.bits[n]);
      scales[n] = {losses[n].keys / expected.keys, losses[n].values / expected.values};
    }
  }
  coder.bases = bases_of(*ops, moments, scales, progress);
  coder.bits = allocate_bits(variances_of(coder.bases), bytes);
  fit_books(moments, plan, kTransformIterations, coder, books, progress);
  TransformCalibration result{{}, layers_of(geometry, plan, coder, books)};
  TransformConfig& config = result.config;
  config.layers = geometry.layers;
  config.sinks = geometry.sinks;
  config.thresholds = coder.thresholds;
  config.window = plan.tokens;
  config.bytes = plan.bytes;
  config.outliers = plan.outliers;
  config.scales = scales;
  for (const std::vector<std::size_t>& bits : coder.bits) config.code_bytes.push_back(code_bytes(bits));
  return result;
}

}  // namespace kvs
