// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/products.h"

#include <algorithm>
#include <functional>

#include "calibrate/transform/level_trellis.h"
#include "calibrate/transform/trellis_store.h"

namespace kvs::inline calibrate {
namespace {

/// Returns a reader of columns [first, first + columns) of a matrix whose rows are `stride` values apart.
std::function<void(std::size_t, std::size_t, std::span<float>)> columns_of(std::span<const float> matrix,
                                                                           std::size_t stride, std::size_t first,
                                                                           std::size_t columns) {
  return [=](std::size_t row, std::size_t count, std::span<float> out) {
    for (std::size_t n = 0; n < count; ++n)
      std::ranges::copy(matrix.subspan((row + n) * stride + first, columns),
                        out.begin() + static_cast<std::ptrdiff_t>(n * columns));
  };
}
auto columns_of(std::span<const float> matrix, std::size_t columns) { return columns_of(matrix, columns, 0, columns); }

/// kHead: the basis of one head's values.
struct HeadMaps {
  HeadMaps(const TransformLayer& layer, const TransformShape& shape, std::size_t head) {
    const std::size_t head_dim = shape.head_dim, square = head_dim * head_dim;
    mean = std::span(layer.mean).subspan((shape.kv_heads + head) * head_dim, head_dim);
    analysis = std::span(layer.analysis).subspan(head * square, square);
    synthesis = std::span(layer.synthesis).subspan(head * square, square);
  }
  std::span<const float> mean, analysis, synthesis;
};

/// Returns −A · mean of a matrix A [coefficient, value].
std::vector<float> analysed_mean(std::span<const float> analysis, std::span<const float> mean) {
  std::vector<float> bias;
  for (std::size_t at = 0; at < analysis.size(); at += mean.size()) {
    double sum = 0;
    for (std::size_t i = 0; i < mean.size(); ++i)
      sum -= static_cast<double>(analysis[at + i]) * static_cast<double>(mean[i]);
    bias.push_back(static_cast<float>(sum));
  }
  return bias;
}

}  // namespace

TransformProducts::TransformProducts(CodingOps& ops, const TransformLayer& layer, const TransformShape& given)
    : shape(given),
      rows(layer.rows),
      sinks(layer.sinks),
      recent(layer.recent),
      threshold(layer.threshold),
      outliers(layer.outliers),
      weights(layer.weights),
      scales(layer.scales),
      entropy(layer.entropy) {
  if (entropy != nullptr) trellis = std::make_shared<const LevelTrellis>(*entropy);
  if (rows == TransformRows::kLayer)
    make_of_layer(ops, layer);
  else
    make_of_heads(ops, layer);
}

void TransformProducts::make_of_layer(CodingOps& ops, const TransformLayer& layer) {
  const std::size_t values = layer.values(), coefficients = layer.coefficients(), head_dim = shape.head_dim,
                    of_layer = values / layer.layers();
  const std::vector<float> bias = analysed_mean(layer.analysis, layer.mean);
  for (std::size_t first = 0; first < values; first += head_dim)
    analysis.push_back(ops.make_weight({coefficients, head_dim, columns_of(layer.analysis, values, first, head_dim),
                                        first == 0 ? std::span<const float>(bias) : std::span<const float>(), true}));
  const std::span<const float> all = layer.synthesis, mean = layer.mean;
  for (std::size_t first = 0; first < values; first += of_layer)
    synthesis.push_back(ops.make_weight(
        {of_layer, coefficients, columns_of(all.subspan(first * coefficients, of_layer * coefficients), coefficients),
         mean.subspan(first, of_layer), true}));
  if (entropy == nullptr) types.k = trellis_store(layer.books, trellis_coefficients(layer.bits, layer.weights));
  if (!layer.prediction.empty()) make_predictions(ops, layer);
}

void TransformProducts::make_predictions(CodingOps& ops, const TransformLayer& layer) {
  const std::size_t values = layer.values(), coefficients = layer.coefficients(), of_layer = values / layer.layers(),
                    channels = layer.prediction.size() / values;
  const std::span<const float> map = layer.prediction;
  for (std::size_t first = 0; first < values; first += of_layer)
    predictions.push_back(
        ops.make_weight({of_layer, channels, columns_of(map.subspan(first * channels, of_layer * channels), channels),
                         std::span<const float>(), true}));
  std::vector<float> taken(coefficients * channels);  // −A · map
  for (std::size_t row = 0; row < coefficients; ++row)
    for (std::size_t value = 0; value < values; ++value) {
      const float factor = layer.analysis[row * values + value];
      for (std::size_t channel = 0; channel < channels; ++channel)
        taken[row * channels + channel] -= factor * map[value * channels + channel];
    }
  predicted_rows =
      ops.make_weight({coefficients, channels, columns_of(taken, channels), std::span<const float>(), true});
}

void TransformProducts::make_of_heads(CodingOps& ops, const TransformLayer& layer) {
  const std::size_t head_dim = shape.head_dim, keys = shape.kv_heads * head_dim;
  std::vector<TrellisValue> values = trellis_coefficients(layer.bits, layer.weights);
  for (std::size_t n = 0; n < keys; ++n) {
    values[n].offset = layer.mean[n];
    values[n].scale = layer.deviations[n];
  }
  const std::span<const TrellisValue> all = values;
  types = {trellis_store(layer.books, all.first(keys), shape.kv_heads),
           trellis_store(layer.books, all.subspan(keys), shape.kv_heads)};
  for (std::size_t head = 0; head < shape.kv_heads; ++head) {
    const HeadMaps maps(layer, shape, head);
    const auto weight = [&](std::span<const float> of, std::span<const float> bias) {
      return ops.make_weight({head_dim, head_dim, columns_of(of, head_dim), bias, true});
    };
    analysis.push_back(weight(maps.analysis, analysed_mean(maps.analysis, maps.mean)));
    synthesis.push_back(weight(maps.synthesis, maps.mean));
  }
}

void TransformProducts::make_results(Backend& backend, const TransformLayer& layer) {
  if (rows != TransformRows::kHead) return;
  for (std::size_t head = 0; head < shape.kv_heads; ++head) {
    const HeadMaps maps(layer, shape, head);
    results.push_back(backend.make_weight(
        {shape.head_dim, shape.head_dim, columns_of(maps.synthesis, shape.head_dim), maps.mean, false}));
  }
}

std::shared_ptr<const TransformProducts> make_transform_products(Backend& backend, const TransformLayer& layer,
                                                                 const TransformShape& shape) {
  BackendCoding ops(backend);
  const auto products = std::make_shared<TransformProducts>(ops, layer, shape);
  products->make_results(backend, layer);
  return products;
}

}  // namespace kvs::inline calibrate
