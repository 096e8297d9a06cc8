// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/coder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

/// Returns rows [head, token] of states of one sequence as a matrix.
template <class T>
BackendView<T, 2> as_rows(const BackendView<T, 4>& states) {
  return states.template reshape<2>({states.size() / states.extent(3), states.extent(3)});
}

/// Returns rows [token] of one head.
template <class T>
BackendView<T, 2> rows_of_head(const BackendView<T, 4>& states, std::size_t head) {
  const std::size_t tokens = states.extent(2), head_dim = states.extent(3);
  return {std::span(states.data() + head * tokens * head_dim, tokens * head_dim), {tokens, head_dim}};
}

}  // namespace

RowValues row_values(CodingOps& ops, const TransformProducts& products, std::span<const TokenStates> layers,
                     const BackendView<const float, 4>& inputs) {
  if (products.rows == TransformRows::kHead) {
    RowBuffer::Part coefficients = head_products(ops, products.analysis, layers.front().v);
    const BackendView<const float, 4> view = coefficients.view();
    return {layers.front().k, view, std::move(coefficients)};
  }
  const std::size_t tokens = layers.front().k.extent(2), heads = products.shape.kv_heads;
  RowBuffer::Part rows(ops.memory(), {1, 1, tokens, products.weights.size()});
  for (std::size_t n = 0; n < products.analysis.size(); ++n) {
    const auto& [k, v] = layers[n / (2 * heads)];
    const std::size_t head = n % (2 * heads);
    ops.linear_f32(rows_of_head(head < heads ? k : v, head % heads), *products.analysis[n], as_rows(rows.view()),
                   n > 0);
  }
  if (products.predicted_rows != nullptr) {
    if (inputs.empty() || inputs.extent(2) != tokens)
      throw Error(ErrorCode::kInternal, "transform", "rows without their tokens' embeddings");
    ops.linear_f32(as_rows(inputs), *products.predicted_rows, as_rows(rows.view()), true);
  }
  const BackendView<const float, 4> view = rows.view();
  return {view, {}, std::move(rows)};
}

TokenRows::Part states_of(CodingOps& ops, const TransformProducts& products, TokenRows::Part rows) {
  if (products.rows == TransformRows::kLayer) return layer_states(ops, products, rows.k.view());
  rows.v = head_products(ops, products.synthesis, rows.v.view());
  return rows;
}

TokenRows::Part layer_states(CodingOps& ops, const TransformProducts& products, const BackendView<const float, 4>& rows,
                             std::size_t layer, const BackendView<const float, 4>& inputs) {
  const std::size_t tokens = rows.extent(2);
  const Weight& synthesis = *products.synthesis[layer];
  const BackendTensor<float, 2> states(ops.memory(), {tokens, synthesis.rows()});
  ops.linear_f32(as_rows(rows), synthesis, states.view(), false);
  if (!products.predictions.empty()) ops.linear_f32(as_rows(inputs), *products.predictions[layer], states.view(), true);
  TokenRows::Part part = empty_part(ops.memory(), products.shape, tokens);
  const BackendView<float, 4> no_queries(std::span<float>(), {1, 0, tokens, products.shape.head_dim});
  ops.split_heads(states.view(), no_queries, part.k.view(), part.v.view());
  return part;
}

RowBuffer::Part head_products(CodingOps& ops, const TransformProducts::Weights& weights,
                              const BackendView<const float, 4>& v) {
  RowBuffer::Part part(ops.memory(), v.shape());
  for (std::size_t head = 0; head < weights.size() && v.extent(2) > 0; ++head)
    ops.linear_f32(rows_of_head(v, head), *weights[head], rows_of_head(part.view(), head), false);
  return part;
}

std::vector<double> error_costs(CodingOps& ops, const TransformProducts& products, const RowValues& values,
                                std::size_t first, const RowBuffer::Part& decoded) {
  const std::vector<float> wanted = download(ops.memory(), values.k), found = download(ops.memory(), decoded.view());
  const std::size_t count = decoded.view().extent(3);
  std::vector<double> costs(decoded.view().extent(2));
  for (std::size_t token = 0; token < costs.size(); ++token)
    for (std::size_t n = 0; n < count; ++n) {
      const double error =
          static_cast<double>(found[token * count + n]) - static_cast<double>(wanted[(first + token) * count + n]);
      costs[token] += static_cast<double>(products.weights[n]) * error * error;
    }
  return costs;
}

double outlier_threshold(const TransformProducts& products, std::size_t coded, std::size_t outliers) {
  const double excess = static_cast<double>(outliers) - products.outliers * static_cast<double>(coded);
  if (excess > kMoreOutliers - 1) return std::numeric_limits<double>::infinity();
  return products.threshold * std::exp2(std::max(0.0, excess));
}

RowFormat outlier_format(std::size_t head_dim) noexcept {
  return {.kind = head_dim % 32 == 0 ? RowKind::kQ8_0 : RowKind::kF16};
}

std::size_t recent_bytes(const TransformShape& shape) noexcept {
  return 2 * shape.kv_heads * rows_bytes(outlier_format(shape.head_dim), shape.head_dim, 1);
}

std::size_t outlier_bytes(const TransformShape& shape, std::size_t layers) noexcept {
  return layers * recent_bytes(shape) + sizeof(std::uint32_t);
}

TokenRows::Part empty_part(DeviceMemory& memory, const TransformShape& shape, std::size_t tokens) {
  const auto [heads, head_dim] = shape;
  return {BackendTensor<float, 4>(memory, {1, heads, tokens, head_dim}),
          BackendTensor<float, 4>(memory, {1, heads, tokens, head_dim})};
}

void put_rows(DeviceMemory& memory, const BackendView<const float, 4>& from, const BackendView<float, 4>& to,
              std::size_t first) {
  const auto [one, heads, count, values] = from.shape();
  for (std::size_t head = 0; head < heads; ++head)
    memory.copy(to.data() + (head * to.extent(2) + first) * values, from.data() + head * count * values,
                count * values * sizeof(float));
}

}  // namespace kvs::inline calibrate
