// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace kvs::inline calibrate {

/// Rows of coefficients that are coded with the same bits.
struct TrellisSamples {
  std::vector<float> rows;        // [row, coefficient]
  std::vector<std::size_t> bits;  // [coefficient]
  std::vector<double> variances;  // [coefficient]: cost of a squared error
};

/// Books of the trellis codec (codecs/trellis.h), [bits 0 … 8][state], fitted by Lloyd's iteration. Rows are coded with
/// the previous books, then each entry becomes the mean of the values coded with it, weighted by cost. Source: Ayanoglu
/// & Gray (1986), IEEE Trans. Inf. Theory 32(6), on trellis codes.
class TrellisBooks {
 public:
  /// Fits the books to Gaussian values from a fixed seed.
  explicit TrellisBooks(Backend& backend);

  const std::vector<float>& books() const noexcept { return books_; }
  /// Runs one iteration. Of the rows of each of `all`, the `outliers` (a share) that cost most are left out. Unused
  /// entries do not change.
  /// @param done  called before each element of `all`
  /// @return for each element the largest cost of a row that was not left out, with variances relative to the largest
  std::vector<double> fit(std::span<const TrellisSamples> all, double outliers,
                          const std::function<void(std::size_t)>& done = {});

 private:
  Backend* backend_;
  std::vector<float> books_;
};

}  // namespace kvs::inline calibrate
