// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kvtc/bases.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "core/dtype.h"
#include "core/interrupt.h"

namespace kvs::inline calibrate {
namespace {

using BasisRows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Returns row `row` of the transposed matrix, rounded to f16, with a sign that makes its largest number positive.
std::vector<float> signed_row(const std::vector<double>& columns, std::size_t rank, std::size_t row) {
  std::vector<float> values;
  double largest = 0;
  for (std::size_t at = row; at < columns.size(); at += rank)
    if (std::abs(columns[at]) > std::abs(largest)) largest = columns[at];
  for (std::size_t at = row; at < columns.size(); at += rank)
    values.push_back(f16_to_f32(f32_to_f16(static_cast<float>(largest < 0 ? -columns[at] : columns[at]))));
  return values;
}

/// Returns the components of the kept tokens, [token, component].
std::vector<float> components_of_samples(std::vector<float> rows, const KvtcBasis& basis) {
  const auto values = static_cast<Eigen::Index>(basis.mean.size()),
             components = static_cast<Eigen::Index>(basis.components),
             count = static_cast<Eigen::Index>(rows.size()) / values;
  Eigen::Map<BasisRows> x(rows.data(), count, values);
  x.rowwise() -= Eigen::Map<const Eigen::RowVectorXf>(basis.mean.data(), values);
  std::vector<float> found(static_cast<std::size_t>(count * components));
  Eigen::Map<BasisRows>(found.data(), count, components).noalias() =
      x * Eigen::Map<const BasisRows>(basis.basis.data(), components, values).transpose();
  return found;
}

}  // namespace

KvtcBasis kvtc_basis(CalibrationOps& ops, const KvtcMoments& moments, std::size_t pool, KvtcMoments::Side side,
                     std::size_t most) {
  const std::size_t values = moments.pools()[pool].values(), rank = std::min(values, most);
  const std::vector<double> mean = moments.mean(pool, side), covariance = moments.covariance(pool, side);
  KvtcBasis basis{.mean = {mean.begin(), mean.end()}, .basis = {}, .samples = {}};
  const SingularValues found = ops.svd(TensorView<const double, 2>(covariance, {values, values}), rank);
  for (std::size_t row = 0; row < rank; ++row) {
    const std::vector<float> component = signed_row(found.left, rank, row);
    basis.basis.insert(basis.basis.end(), component.begin(), component.end());
  }
  basis.components = (rank + kKvtcStep - 1) / kKvtcStep * kKvtcStep;
  basis.basis.resize(basis.components * values);
  basis.samples = components_of_samples(moments.samples(pool, side), basis);
  basis.errors = std::make_unique<KvtcErrors>(basis.samples, basis.components);
  return basis;
}

KvtcBases::KvtcBases(CalibrationOps& ops, const KvtcMoments& moments, double max_bits, const KvtcProgress& progress)
    : max_bits_(max_bits), bases_(moments.pools().size()) {
  for (std::size_t pool = 0; pool < bases_.size(); ++pool)
    for (const auto side : {KvtcMoments::kKeys, KvtcMoments::kValues}) {
      progress("bases", 2 * pool + side, 2 * bases_.size());
      check_interrupt();
      // Codes have at least 2 bits a component.
      const double most = max_bits / 2 * static_cast<double>(moments.pools()[pool].values());
      bases_[pool][side] = kvtc_basis(ops, moments, pool, side, static_cast<std::size_t>(most) + kKvtcStep);
    }
}

}  // namespace kvs::inline calibrate
