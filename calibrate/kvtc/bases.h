// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "calibrate/kvtc/moments.h"
#include "calibrate/kvtc/plan.h"
#include "kernels/calibration_ops.h"

namespace kvs::inline calibrate {

/// Called with a step's name, the completed units and their total.
using KvtcProgress = std::function<void(std::string_view step, std::size_t done, std::size_t total)>;

/// The principal components of one side of a pool, and the kept tokens in them.
struct KvtcBasis {
  std::vector<float> mean;     // [value]
  std::vector<float> basis;    // [component, value], as in KvtcSide; zeros after the last principal component
  std::vector<float> samples;  // [token, component]
  std::size_t components = 0;  // a multiple of kKvtcStep
  std::unique_ptr<KvtcErrors> errors = {};
};

/// Returns the principal components, of which the largest number is positive, so that every program finds the same.
/// Source: KVTC, section 3.1. Deviations: the eigenvectors of the covariance in place of an SVD of the rows, the same
/// up to rounding; rounded to f16, as they are stored.
/// @param most  components at most
/// @throws Error kData if LAPACK does not converge
KvtcBasis kvtc_basis(CalibrationOps& ops, const KvtcMoments& moments, std::size_t pool, KvtcMoments::Side side,
                     std::size_t most);

/// The bases of all pools, for plans of at most `max_bits` bits a value.
class KvtcBases {
 public:
  KvtcBases(CalibrationOps& ops, const KvtcMoments& moments, double max_bits, const KvtcProgress& progress);

  double max_bits() const noexcept { return max_bits_; }
  std::size_t pools() const noexcept { return bases_.size(); }
  const KvtcBasis& of(std::size_t pool, KvtcMoments::Side side) const noexcept { return bases_[pool][side]; }

 private:
  double max_bits_;
  std::vector<std::array<KvtcBasis, 2>> bases_;  // [pool][side]
};

}  // namespace kvs::inline calibrate
