#include "calibrate/transform/products.h"

#include <functional>

#include "calibrate/transform/trellis_store.h"

namespace kvs::inline calibrate {
namespace {

using Element = std::function<float(std::size_t row, std::size_t column)>;

std::unique_ptr<Weight> make_weight(Backend& backend, std::size_t rows, std::size_t columns, const Element& value,
                                    std::span<const float> bias, bool f32 = true) {
  WeightSource source{rows, columns, {}, bias, f32};
  source.read = [&](std::size_t first, std::size_t count, std::span<float> out) {
    for (std::size_t n = 0; n < count * columns; ++n) out[n] = value(first + n / columns, n % columns);
  };
  return backend.make_weight(source);
}

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

TransformProducts::TransformProducts(Backend& backend, const TransformLayer& layer, const TransformShape& given)
    : shape(given),
      rows(layer.rows),
      sinks(layer.sinks),
      recent(layer.recent),
      threshold(layer.threshold),
      outliers(layer.outliers),
      weights(layer.weights) {
  if (rows == TransformRows::kLayer)
    make_of_layer(backend, layer);
  else
    make_of_heads(backend, layer);
}

void TransformProducts::make_of_layer(Backend& backend, const TransformLayer& layer) {
  const std::size_t values = layer.values(), head_dim = shape.head_dim;
  const std::vector<float> bias = analysed_mean(layer.analysis, layer.mean);
  for (std::size_t first = 0; first < values; first += head_dim)
    analysis.push_back(make_weight(
        backend, values, head_dim,
        [&](std::size_t row, std::size_t column) { return layer.analysis[row * values + first + column]; },
        first == 0 ? std::span<const float>(bias) : std::span<const float>()));
  synthesis.push_back(make_weight(
      backend, values, values,
      [&](std::size_t row, std::size_t column) { return layer.synthesis[row * values + column]; }, layer.mean));
  types.k = trellis_store(layer.books, trellis_coefficients(layer.bits, layer.weights));
}

void TransformProducts::make_of_heads(Backend& backend, const TransformLayer& layer) {
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
    const std::size_t square = head_dim * head_dim;
    const std::span<const float> mean = std::span(layer.mean).subspan(keys + head * head_dim, head_dim),
                                 forward = std::span(layer.analysis).subspan(head * square, square),
                                 back = std::span(layer.synthesis).subspan(head * square, square);
    const auto weight = [&](std::span<const float> of, std::span<const float> bias, bool f32) {
      return make_weight(
          backend, head_dim, head_dim, [&](std::size_t row, std::size_t column) { return of[row * head_dim + column]; },
          bias, f32);
    };
    analysis.push_back(weight(forward, analysed_mean(forward, mean), true));
    synthesis.push_back(weight(back, mean, true));
    results.push_back(weight(back, mean, false));
  }
}

std::shared_ptr<const TransformProducts> make_transform_products(Backend& backend, const TransformLayer& layer,
                                                                 const TransformShape& shape) {
  return std::make_shared<TransformProducts>(backend, layer, shape);
}

}  // namespace kvs::inline calibrate
