#include "calibrate/jlrd.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace kvs {
namespace {

constexpr double kRidge = 1e-4;  // of the mean diagonal of E[xxᵀ]

double power_of(SingularSplit split) noexcept {
  return split == SingularSplit::kUp ? 1.0 : split == SingularSplit::kDown ? 0.0 : 0.5;
}

/// The first `count` values, each to the power of `exponent`.
std::vector<double> powers(std::span<const double> values, std::size_t count, double exponent) {
  std::vector<double> result(count);
  std::ranges::transform(values.first(count), result.begin(), [&](double value) { return std::pow(value, exponent); });
  return result;
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

std::vector<double> whitening_factor(CalibrationOps& ops, std::span<const double> second_moment, std::size_t tokens) {
  const auto size = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(second_moment.size()))));
  std::vector<double> factor(second_moment.begin(), second_moment.end());
  double trace = 0;
  for (double& value : factor) value /= static_cast<double>(tokens);
  for (std::size_t n = 0; n < size; ++n) trace += factor[n * size + n];
  for (std::size_t n = 0; n < size; ++n) factor[n * size + n] += kRidge * trace / static_cast<double>(size);
  ops.cholesky({factor, {size, size}});
  return factor;
}

LowRankFactors factorise(CalibrationOps& ops, std::span<const double> matrix, std::size_t columns, std::size_t rank,
                         SingularSplit split, std::span<const double> whitening) {
  LowRankFactors factors{matrix.size() / columns, columns, rank, {}, {}, {}};
  if (rank > std::min(factors.rows, columns))
    throw Error(ErrorCode::kInternal, "factorise", "rank " + std::to_string(rank) + " is above full rank");
  const TensorView<const double, 2> lower(
      whitening, whitening.empty() ? std::array<std::size_t, 2>{0, 0} : std::array{columns, columns});
  std::vector<double> whitened;
  if (!whitening.empty()) {
    whitened.assign(matrix.begin(), matrix.end());
    ops.multiply_lower({whitened, {factors.rows, columns}}, lower, Triangular::kMultiply);
    matrix = whitened;
  }
  SingularValues svd = ops.svd({matrix, {factors.rows, columns}}, rank);
  if (!whitening.empty() && rank > 0) ops.multiply_lower({svd.right, {rank, columns}}, lower, Triangular::kSolve);

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

}  // namespace kvs
