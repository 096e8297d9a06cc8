// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/calibration.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "calibrate/transform/bits.h"
#include "calibrate/transform/books.h"
#include "calibrate/transform/sensitivity.h"
#include "calibrate/transform/storage_fit.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/interrupt.h"

namespace kvs::inline calibrate {
namespace {

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::size_t kMeasuredBits = 2;  // per value, when costs are measured

Eigen::Index index(std::size_t n) { return static_cast<Eigen::Index>(n); }

TransformShape shape_of(const TransformGeometry& geometry, const LayerGroup& group) {
  return {geometry.heads[group.first].kv_heads, geometry.heads[group.first].head_dim};
}

/// Data of the layers that the steps pass on.
struct Coder {
  std::vector<LayerGroup> groups;
  std::vector<TransformBasis> bases;           // [group]
  std::vector<std::vector<std::size_t>> bits;  // [group][coefficient]
  std::vector<double> thresholds;              // [group]
};

/// The coded part of the calibration's rows.
class Coding {
 public:
  Coding(const TransformMoments& moments, const TransformPlan& plan, const std::vector<LayerGroup>& groups,
         const TransformProgress& progress)
      : moments_(moments), plan_(plan), progress_(progress) {
    for (const LayerGroup& group : groups)
      sets_.push_back(row_sets(plan.rows, shape_of(moments.geometry(), group), group.count));
  }

  /// Returns the bits of the coefficients of groups `first_group`, `first_group` + 1, …
  /// @param tokens  [group] number of tokens with stored codes
  std::vector<std::vector<std::size_t>> bits(std::size_t first_group, std::span<const TransformBasis> bases,
                                             std::span<const std::size_t> tokens, std::size_t bytes) const {
    std::vector<CodeRows> rows;
    for (std::size_t n = 0; n < bases.size(); ++n)
      for (const RowSet& set : sets_[first_group + n]) {
        rows.push_back({{}, tokens[n]});
        for (std::size_t row = 0; row < set.count; ++row) {
          const auto first = bases[n].variances.begin() + difference(set.first + row * set.size);
          rows.back().variances.emplace_back(first, first + difference(set.size));
        }
      }
    const std::vector<CodeBits> found = allocate_bits(rows, bytes);
    std::vector<std::vector<std::size_t>> bits(bases.size());
    for (std::size_t n = 0; n < found.size(); ++n)
      for (const std::vector<std::size_t>& row : found[n])
        bits[n / sets_.front().size()].insert(bits[n / sets_.front().size()].end(), row.begin(), row.end());
    return bits;
  }

  /// Returns the step and the entropy model of the storage form. @param tokens, bytes  as for bits()
  StorageFit fit_levels(const Coder& coder, std::span<const std::size_t> tokens, std::size_t bytes) const {
    std::vector<StorageSamples> samples;
    for (std::size_t n = 0; n < coder.bases.size(); ++n) {
      const FloatRows rows = coefficients(coder, n);
      const std::size_t count = moments_.samples_of_document();
      samples.push_back({{rows.data(), rows.data() + rows.size()},
                         coder.bases[n].variances,
                         std::min(moments_.geometry().run, count),
                         tokens[n]});
    }
    return fit_storage(samples, static_cast<double>(bytes),
                       [&](std::size_t done, std::size_t total) { progress_("levels", done, total); });
  }

  void fit_books(std::size_t iterations, Coder& coder, TrellisBooks& books) const {
    std::vector<TrellisSamples> samples;
    for (std::size_t n = 0; n < coder.bases.size(); ++n) add_samples(n, coder, samples);
    for (std::size_t iteration = 0; iteration < iterations; ++iteration)
      coder.thresholds = books.fit(samples, plan_.outliers, [&](std::size_t n) {
        check_interrupt();
        progress_("books", iteration * samples.size() + n, iterations * samples.size());
      });
    if (plan_.rows == TransformRows::kHead) coder.thresholds.assign(coder.bases.size(), 0);
  }

 private:
  static std::ptrdiff_t difference(std::size_t n) { return static_cast<std::ptrdiff_t>(n); }

  using FloatRows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  /// Returns the coefficients of a group's rows, [row, coefficient].
  FloatRows coefficients(const Coder& coder, std::size_t n) const {
    const TransformBasis& basis = coder.bases[n];
    const std::vector<float> rows = moments_.samples(coder.groups[n]);
    const std::size_t values = basis.mean.size(), count = rows.size() / values;
    const Eigen::Map<const FloatRows> x(rows.data(), index(count), index(values));
    const Eigen::Map<const Rows> analysis(basis.analysis.data(), index(basis.variances.size()), index(values));
    const Eigen::Map<const Eigen::RowVectorXd> mean(basis.mean.data(), index(values));
    Rows residual = x.cast<double>().rowwise() - mean;
    if (!basis.map.empty()) {
      const std::size_t inputs = moments_.geometry().inputs;
      const Eigen::Map<const Rows> map(basis.map.data(), index(values), index(inputs)),
          embeddings(moments_.input_samples().data(), index(count), index(inputs));
      residual -= embeddings * map.transpose();
    }
    return (residual * analysis.transpose()).cast<float>();
  }

  void add_samples(std::size_t n, const Coder& coder, std::vector<TrellisSamples>& samples) const {
    const TransformBasis& basis = coder.bases[n];
    const FloatRows rows = coefficients(coder, n);
    for (const RowSet& set : sets_[n])
      for (std::size_t row = 0; row < set.count; ++row) {
        const std::size_t first = set.first + row * set.size;
        const FloatRows part = rows.middleCols(index(first), index(set.size));
        const auto bits = coder.bits[n].begin() + difference(first);
        const auto variances = basis.variances.begin() + difference(first);
        samples.push_back({{part.data(), part.data() + part.size()},
                           {bits, bits + difference(set.size)},
                           {variances, variances + difference(set.size)}});
      }
  }

  const TransformMoments& moments_;
  const TransformPlan& plan_;
  const TransformProgress& progress_;
  std::vector<std::vector<RowSet>> sets_;  // [group], as many in each
};

/// Sets the products of TransformLayer from those of TransformBasis. @param kept  coefficients, with rows by layer
void set_products(std::size_t head_dim, const TransformBasis& basis, const std::vector<std::size_t>& kept,
                  TransformLayer& layer) {
  const std::size_t values = basis.mean.size();
  if (layer.rows == TransformRows::kLayer) {
    for (const std::size_t row : kept)
      for (std::size_t i = 0; i < values; ++i)
        layer.analysis.push_back(static_cast<float>(basis.analysis[row * values + i]));
    for (std::size_t i = 0; i < values; ++i)
      for (const std::size_t row : kept)
        layer.synthesis.push_back(static_cast<float>(basis.synthesis[row * values + i]));
    return;
  }
  const std::size_t keys = values / 2;
  for (std::size_t n = 0; n < keys; ++n)
    layer.deviations.push_back(static_cast<float>(basis.synthesis[n * values + n]));
  for (std::size_t first = keys; first < values; first += head_dim)
    for (std::size_t row = first; row < first + head_dim; ++row)
      for (std::size_t column = first; column < first + head_dim; ++column) {
        layer.analysis.push_back(static_cast<float>(basis.analysis[row * values + column]));
        layer.synthesis.push_back(static_cast<float>(basis.synthesis[column * values + row]));
      }
}

/// Returns the coefficients that are kept: in a group of several layers those with bits, or the first one.
std::vector<std::size_t> kept_coefficients(const std::vector<std::size_t>& bits, const LayerGroup& group) {
  std::vector<std::size_t> kept;
  for (std::size_t n = 0; n < bits.size(); ++n)
    if (group.count == 1 || bits[n] > 0) kept.push_back(n);
  if (kept.empty()) kept.push_back(0);
  return kept;
}

/// Returns a layer or a group without the data of its form.
TransformLayer plain_layer(const TransformGeometry& geometry, const TransformPlan& plan, const Coder& coder,
                           std::size_t n) {
  const LayerGroup& group = coder.groups[n];
  const TransformBasis& basis = coder.bases[n];
  TransformLayer layer;
  layer.layer = geometry.layers[group.first];
  for (std::size_t other = 1; other < group.count; ++other)
    layer.others.push_back(geometry.layers[group.first + other]);
  layer.rows = plan.rows;
  layer.mean.assign(basis.mean.begin(), basis.mean.end());
  layer.prediction.assign(basis.map.begin(), basis.map.end());
  layer.outliers = plan.outliers;
  layer.sinks = geometry.sinks;
  layer.recent = geometry.recent;
  return layer;
}

std::vector<TransformLayer> layers_of(const TransformGeometry& geometry, const TransformPlan& plan, const Coder& coder,
                                      const TrellisBooks& books) {
  std::vector<TransformLayer> layers;
  for (std::size_t n = 0; n < coder.bases.size(); ++n) {
    const TransformBasis& basis = coder.bases[n];
    TransformLayer& layer = layers.emplace_back(plain_layer(geometry, plan, coder, n));
    const std::vector<std::size_t> kept = kept_coefficients(coder.bits[n], coder.groups[n]);
    set_products(geometry.heads[coder.groups[n].first].head_dim, basis, kept, layer);
    const double most = *std::ranges::max_element(basis.variances);
    for (const std::size_t coefficient : kept) {
      layer.bits.push_back(coder.bits[n][coefficient]);
      layer.weights.push_back(static_cast<float>(basis.variances[coefficient] / most));
    }
    layer.threshold = coder.thresholds[n];
    layer.books = books.books();
  }
  return layers;
}

/// Rounds to f16, in which the storage form's maps are written. @throws Error kData for values beyond its range
void round_to_f16(std::vector<float>& values, std::size_t layer) {
  constexpr float kMostF16 = 65504;
  for (float& value : values) {
    if (!(std::abs(value) <= kMostF16))
      throw Error(ErrorCode::kData, "layer " + std::to_string(layer),
                  "found a basis with values beyond f16, expected keys and values of a smaller range");
    value = f16_to_f32(f32_to_f16(value));
  }
}

/// Returns the layers in the storage form: coefficients in steps. A group that codes none keeps the first one.
std::vector<TransformLayer> stored_layers(const TransformGeometry& geometry, const TransformPlan& plan,
                                          const Coder& coder, const StorageFit& fit) {
  std::vector<TransformLayer> layers;
  for (std::size_t n = 0; n < coder.bases.size(); ++n) {
    TransformBasis basis = coder.bases[n];
    TransformLayer& layer = layers.emplace_back(plain_layer(geometry, plan, coder, n));
    layer.entropy = fit.model;
    layer.scales = coded_scales(basis.variances, fit.step);
    if (layer.scales.empty()) layer.scales.push_back(0);
    layer.weights.assign(layer.scales.size(), 1);
    std::vector<std::size_t> kept(layer.scales.size());
    std::iota(kept.begin(), kept.end(), std::size_t{0});
    const std::size_t values = basis.mean.size();
    for (const std::size_t row : kept) {
      const double deviation = std::sqrt(basis.variances[row]) / fit.step;
      for (std::size_t i = 0; i < values; ++i) {
        basis.analysis[row * values + i] *= deviation;
        basis.synthesis[row * values + i] /= deviation;
      }
    }
    set_products(geometry.heads[coder.groups[n].first].head_dim, basis, kept, layer);
    for (std::vector<float>* const map : {&layer.analysis, &layer.synthesis, &layer.prediction})
      round_to_f16(*map, layer.layer);
  }
  return layers;
}

std::vector<TransformBasis> bases_of(CalibrationOps& ops, const TransformMoments& moments, const TransformPlan& plan,
                                     const std::vector<LayerGroup>& groups, std::span<const TransformScales> scales,
                                     const TokenPrediction* prediction, const WantedVectors& wanted,
                                     const TransformProgress& progress) {
  std::vector<TransformBasis> bases;
  for (const LayerGroup& group : groups) {
    progress("bases", bases.size(), groups.size());
    check_interrupt();
    bases.push_back(
        transform_basis(ops, moments, group, scales.subspan(group.first, group.count), plan.rows, prediction, wanted));
  }
  return bases;
}

/// Returns some documents, evenly spaced.
std::vector<std::vector<std::int32_t>> measured_documents(std::span<const std::vector<std::int32_t>> all) {
  std::vector<std::vector<std::int32_t>> chosen;
  const std::size_t count = std::min(kTransformMeasured, all.size());
  for (std::size_t n = 0; n < count; ++n) chosen.push_back(all[(2 * n + 1) * all.size() / (2 * count)]);
  return chosen;
}

/// Returns the estimated cost of coding keys and values of a layer with these bits.
TransformScales estimated(const TransformBasis& basis, const std::vector<std::size_t>& bits) {
  TransformScales costs{0, 0};
  for (std::size_t n = 0; n < bits.size(); ++n) {
    const double cost = basis.variances[n] * kTrellisError[bits[n]];
    costs.keys += basis.key_shares[n] * cost;
    costs.values += (1 - basis.key_shares[n]) * cost;
  }
  return costs;
}

/// Tokens of a layer at the time when it stores most.
struct HeldTokens {
  std::size_t sinks = 0, waiting = 0, coded = 0;
};

HeldTokens held_tokens(std::size_t window, const TransformGeometry& geometry, std::size_t tokens) {
  const std::size_t all = window > 0 ? std::min(window, tokens) : tokens;
  HeldTokens held{.sinks = std::min(all, geometry.sinks)};
  held.waiting = std::min(all - held.sinks, 2 * geometry.recent);
  held.coded = std::max<std::size_t>(1, all - held.sinks - held.waiting);
  return held;
}

}  // namespace

double transform_outliers(TransformRows rows) noexcept { return rows == TransformRows::kHead ? 0 : 0.005; }

std::size_t transform_recent(std::size_t tokens) noexcept {
  constexpr std::size_t kMost = 16, kShare = 32;
  return std::min(kMost, tokens / kShare);
}

TransformGeometry transform_geometry(const ModelConfig& model, std::size_t sinks, std::size_t recent,
                                     std::size_t layers_per_group) {
  TransformGeometry geometry{model.cached_layers(), {}, sinks, recent};
  const auto kind = [&](std::size_t layer) {  // layers of a kind can share a row
    const AttentionConfig& attention = model.layer[layer].attention;
    return std::tuple(attention.kv_heads, attention.head_dim, attention.window, attention.chunk);
  };
  for (std::size_t n = 0; n < geometry.layers.size(); ++n) {
    const std::size_t layer = geometry.layers[n], before = geometry.layers[n - std::min<std::size_t>(n, 1)];
    const AttentionConfig& attention = model.layer[layer].attention;
    geometry.heads.push_back({attention.query_heads, attention.kv_heads, attention.head_dim});
    const bool joins = n > 0 && geometry.groups.back().count < layers_per_group && kind(layer) == kind(before) &&
                       !model.is_read(layer) && !model.is_read(before);
    if (joins)
      ++geometry.groups.back().count;
    else
      geometry.groups.push_back({n, 1});
  }
  return geometry;
}

TransformGeometry standard_transform_geometry(const ModelConfig& model, std::size_t tokens) {
  return transform_geometry(model, kTransformSinks, transform_recent(tokens));
}

TransformMoments transform_moments(const ModelSource& source, const TransformGeometry& geometry) {
  const ModelConfig& model = source.config();
  std::vector<ScoreRule> rules;
  std::vector<std::vector<double>> outputs;
  for (std::size_t n = 0; n < geometry.layers.size(); ++n) {
    const std::size_t layer = geometry.layers[n], heads = geometry.heads[n].query_heads,
                      head_dim = geometry.heads[n].head_dim;
    rules.push_back(score_rule(model, layer));
    const std::vector<float> rows = source.projection(layer, 'o');  // [d_model, query_head · head_dim]
    std::vector<double>& grams = outputs.emplace_back(heads * head_dim * head_dim);
    const Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> output(
        rows.data(), index(model.d_model), index(heads * head_dim));
    for (std::size_t head = 0; head < heads; ++head) {
      const Rows part = output.middleCols(index(head * head_dim), index(head_dim)).cast<double>();
      Eigen::Map<Rows>(&grams[head * head_dim * head_dim], index(head_dim), index(head_dim)) = part.transpose() * part;
    }
  }
  read_sinks(rules, geometry.layers, model, &source);
  return {geometry, std::move(rules), std::move(outputs)};
}

std::size_t min_transform_bytes(const ModelConfig& model, const TransformGeometry& geometry,
                                const TransformPlan& plan) {
  const std::size_t gain = plan.form == TransformForm::kStorage ? 0 : 2;
  std::size_t bytes = 0;
  for (const LayerGroup& group : geometry.groups) {
    const TransformShape shape = shape_of(geometry, group);
    std::size_t gains = 0;
    for (const RowSet& set : row_sets(plan.rows, shape)) gains += set.count;
    const HeldTokens held = held_tokens(model.window(geometry.layers[group.first]), geometry, plan.tokens);
    // Their share, and those that occur before the threshold has risen enough.
    const std::size_t outliers =
        plan.rows == TransformRows::kHead || plan.form == TransformForm::kStorage
            ? 0
            : kMoreOutliers + static_cast<std::size_t>(plan.outliers * static_cast<double>(held.coded));
    bytes += held.sinks * geometry.values(group) * CacheBytes::kStoredValue +
             held.waiting * group.count * recent_bytes(shape) + held.coded * gains * gain +
             outliers * outlier_bytes(shape, group.count);
  }
  return bytes;
}

namespace {

/// Measures the costs of errors of each layer, coded alone.
std::vector<TransformScales> measured_scales(Decoder& decoder, const TransformMoments& moments,
                                             std::span<const std::vector<std::int32_t>> documents,
                                             const TransformPlan& plan, TrellisBooks& books,
                                             const TransformProgress& progress, const TransformMeasured& measured) {
  const TransformGeometry& geometry = moments.geometry();
  const std::size_t layers = geometry.layers.size();
  std::vector<TransformScales> scales(layers);
  Coder coder{.groups = single_layers(layers), .bases = {}, .bits = {}, .thresholds = {}};
  const auto ops = make_calibration_ops(decoder.model().backend());
  coder.bases = bases_of(*ops, moments, plan, coder.groups, scales, nullptr, nullptr, progress);
  const Coding coding(moments, plan, coder.groups, progress);
  const std::vector<std::size_t> one_token{1};
  for (std::size_t n = 0; n < layers; ++n)
    coder.bits.push_back(
        coding.bits(n, {&coder.bases[n], 1}, one_token, kMeasuredBits * geometry.heads[n].values() / 8).front());
  coding.fit_books(kTransformFirstIterations, coder, books);
  const std::vector<TransformScales> losses =
      coding_losses(decoder, measured_documents(documents), layers_of(geometry, plan, coder, books), plan.losses,
                    [&](std::span<const TransformScales> known) {
                      progress("costs", known.size(), layers);
                      if (measured) measured(known);
                    });
  for (std::size_t n = 0; n < layers; ++n) {
    const TransformScales expected = estimated(coder.bases[n], coder.bits[n]);
    scales[n] = {losses[n].keys / expected.keys, losses[n].values / expected.values};
  }
  return scales;
}

/// Adds the values of each group's first layer, and 0 for the others.
void add_group_values(const TransformGeometry& geometry, std::span<const std::size_t> code_bytes,
                      std::span<const double> thresholds, TransformConfig& config) {
  for (std::size_t n = 0; n < geometry.groups.size(); ++n) {
    const std::size_t count = geometry.groups[n].count;
    config.groups.push_back(count);
    config.code_bytes.push_back(code_bytes[n]);
    config.thresholds.push_back(thresholds[n]);
    config.code_bytes.resize(config.code_bytes.size() + count - 1);
    config.thresholds.resize(config.code_bytes.size());
  }
}

}  // namespace

TransformCalibration calibrate_transform(Decoder& decoder, const TransformMoments& moments,
                                         std::span<const std::vector<std::int32_t>> documents,
                                         const TransformPlan& plan, const TransformProgress& progress,
                                         const TransformMeasured& measured) {
  const TransformGeometry& geometry = moments.geometry();
  const ModelConfig& model = decoder.model().config();
  const std::size_t bytes = plan.bytes - min_transform_bytes(model, geometry, plan);  // for codes
  std::vector<std::size_t> coded;                                                     // [group] number of coded tokens
  for (const LayerGroup& group : geometry.groups)
    coded.push_back(held_tokens(model.window(geometry.layers[group.first]), geometry, plan.tokens).coded);
  Backend& backend = decoder.model().backend();
  TrellisBooks books(backend);
  const std::vector<TransformScales> scales =
      plan.scales.empty() ? measured_scales(decoder, moments, documents, plan, books, progress, measured) : plan.scales;
  Coder coder{.groups = geometry.groups, .bases = {}, .bits = {}, .thresholds = {}};
  const auto ops = make_calibration_ops(backend);
  std::optional<TokenPrediction> prediction;
  if (geometry.inputs > 0) prediction = token_prediction(moments);
  double values = 0;  // that a document codes
  for (std::size_t n = 0; n < coded.size(); ++n)
    values += static_cast<double>(coded[n] * geometry.values(geometry.groups[n]));
  WantedVectors wanted;
  if (plan.form == TransformForm::kStorage)  // the coefficients that can be coded
    wanted = [&](std::span<const double> variances) {
      const double share = static_cast<double>(variances.size()) / values;
      const std::size_t most = most_coded(variances, static_cast<double>(bytes) * share);
      return plan.coefficients > 0 ? std::min(most, plan.coefficients) : most;
    };
  coder.bases =
      bases_of(*ops, moments, plan, coder.groups, scales, prediction ? &*prediction : nullptr, wanted, progress);
  const Coding coding(moments, plan, coder.groups, progress);
  TransformCalibration result;
  TransformConfig& config = result.config;
  if (plan.form == TransformForm::kStorage) {
    const StorageFit fit = coding.fit_levels(coder, coded, bytes);
    result.layers = stored_layers(geometry, plan, coder, fit);
    add_group_values(geometry, fit.bytes, std::vector<double>(fit.bytes.size()), config);
  } else {
    coder.bits = coding.bits(0, coder.bases, coded, bytes);
    coding.fit_books(kTransformIterations, coder, books);
    result.layers = layers_of(geometry, plan, coder, books);
    std::vector<std::size_t> of_groups;
    for (std::size_t n = 0; n < coder.groups.size(); ++n)
      of_groups.push_back(code_bytes(result.layers[n], shape_of(geometry, coder.groups[n])));
    add_group_values(geometry, of_groups, coder.thresholds, config);
  }
  config.rows = plan.rows;
  config.form = plan.form;
  config.layers = geometry.layers;
  config.sinks = geometry.sinks;
  config.recent = geometry.recent;
  config.window = plan.tokens;
  config.bytes = plan.bytes;
  config.outliers = plan.outliers;
  config.predicts = geometry.inputs > 0;
  config.scales = scales;
  return result;
}

}  // namespace kvs::inline calibrate
