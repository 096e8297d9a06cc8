// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/jlrd.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

double power_of(SingularSplit split) noexcept {
  return split == SingularSplit::kUp ? 1.0 : split == SingularSplit::kDown ? 0.0 : 0.5;
}

/// Returns the first `count` values, each to the power of `exponent`.
std::vector<double> powers(std::span<const double> values, std::size_t count, double exponent) {
  std::vector<double> result(count);
  std::ranges::transform(values.first(count), result.begin(), [&](double value) { return std::pow(value, exponent); });
  return result;
}

/// Computes Bᵀ x or B⁻ᵀ x for each block B of rows, in place. A row of Bᵀ x needs that row of x and the rows below it.
/// x: [rows, columns].
void weigh_rows(const std::vector<std::vector<double>>& blocks, std::span<double> x, std::size_t columns,
                Triangular how) {
  const auto add = [&](double* to, double factor, const double* from) {
    for (std::size_t column = 0; column < columns; ++column) to[column] += factor * from[column];
  };
  double* block_rows = x.data();
  for (const std::vector<double>& block : blocks) {
    const auto size = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(block.size()))));
    for (std::size_t step = 0; step < size; ++step) {
      const bool multiply = how == Triangular::kMultiply;
      const std::size_t row = multiply ? step : size - 1 - step;
      double* const target = block_rows + row * columns;
      const double diagonal = block[row * size + row];
      if (multiply) std::for_each_n(target, columns, [&](double& value) { value *= diagonal; });
      for (std::size_t below = row + 1; below < size; ++below)
        add(target, (multiply ? 1 : -1) * block[below * size + row], block_rows + below * columns);
      if (!multiply) std::for_each_n(target, columns, [&](double& value) { value /= diagonal; });
    }
    block_rows += size * columns;
  }
}

}  // namespace

std::vector<double> unrotated_rows(std::span<const float> wk, std::span<const std::vector<std::size_t>> elite,
                                   std::size_t head_dim, std::size_t rotary_dim, std::size_t d_model) {
  std::vector<double> rows;
  rows.reserve(wk.size());
  for (std::size_t head = 0; head < elite.size(); ++head) {
    for (std::size_t channel = 0; channel < head_dim; ++channel) {
      const bool turns = channel < rotary_dim;
      if (turns && std::ranges::find(elite[head], channel % (rotary_dim / 2)) != elite[head].end()) continue;
      const auto row = wk.subspan((head * head_dim + channel) * d_model, d_model);
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  return rows;
}

LowRankFactors factorise(CalibrationOps& ops, std::span<const double> matrix, std::size_t columns, std::size_t rank,
                         SingularSplit split, const Weighting& weighting) {
  LowRankFactors factors{matrix.size() / columns, columns, rank, {}, {}, {}};
  if (rank > std::min(factors.rows, columns))
    throw Error(ErrorCode::kInternal, "factorise", "rank " + std::to_string(rank) + " is above full rank");
  const bool by_inputs = !weighting.inputs.empty();
  const TensorView<const double, 2> lower(weighting.inputs,
                                          by_inputs ? std::array{columns, columns} : std::array<std::size_t, 2>{0, 0});
  std::vector<double> weighted(matrix.begin(), matrix.end());
  weigh_rows(weighting.outputs, weighted, columns, Triangular::kMultiply);
  if (by_inputs) ops.multiply_lower({weighted, {factors.rows, columns}}, lower, Triangular::kMultiply);
  SingularValues svd = ops.svd({weighted, {factors.rows, columns}}, rank);
  weigh_rows(weighting.outputs, svd.left, rank, Triangular::kSolve);
  if (by_inputs && rank > 0) ops.multiply_lower({svd.right, {rank, columns}}, lower, Triangular::kSolve);

  factors.up.resize(factors.rows * rank);
  factors.down.resize(rank * columns);
  const std::vector<double> up_scale = powers(svd.singular, rank, power_of(split)),
                            down_scale = powers(svd.singular, rank, 1 - power_of(split));
  for (std::size_t row = 0; row < factors.rows; ++row)
    for (std::size_t k = 0; k < rank; ++k)
      factors.up[row * rank + k] = static_cast<float>(svd.left[row * rank + k] * up_scale[k]);
  for (std::size_t k = 0; k < rank; ++k)
    for (std::size_t column = 0; column < columns; ++column)
      factors.down[k * columns + column] = static_cast<float>(svd.right[k * columns + column] * down_scale[k]);
  factors.singular = std::move(svd.singular);
  return factors;
}

std::pair<std::size_t, std::size_t> shared_ranks(std::span<const double> singular_k, std::span<const double> singular_v,
                                                 std::size_t budget) {
  std::size_t k = 1, v = 1;
  while (k + v < budget) {
    const double next_k = k < singular_k.size() ? singular_k[k] : -1,
                 next_v = v < singular_v.size() ? singular_v[v] : -1;
    if (next_k < 0 && next_v < 0) break;
    ++(next_k >= next_v ? k : v);
  }
  return {k, v};
}

std::size_t no_extra_parameters_rank(std::size_t d_model, std::size_t kv_heads, std::size_t head_dim,
                                     std::size_t r) noexcept {
  const std::size_t rows = kv_heads * (2 * head_dim - 2 * r);
  return d_model * rows / (d_model + rows);
}

}  // namespace kvs::inline calibrate
