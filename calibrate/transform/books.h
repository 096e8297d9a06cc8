#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace kvs {

/// Rows of coefficients that are coded with the same bits.
struct TrellisSamples {
  std::vector<float> rows;        // [row, coefficient]
  std::vector<std::size_t> bits;  // [coefficient]
  std::vector<double> variances;  // [coefficient]: what a squared error costs
};

/// Books of the trellis codec (codecs/trellis.h), [bits 0 … 8][state]. Lloyd's iteration: rows are coded with the books
/// of before, then each entry becomes the mean of what it stands for, by cost.
/// Source: Ayanoglu & Gray (1986), IEEE Trans. Inf. Theory 32(6), of trellis codes.
class TrellisBooks {
 public:
  /// Fitted to Gaussian values, of a fixed seed.
  explicit TrellisBooks(Backend& backend);

  const std::vector<float>& books() const noexcept { return books_; }
  /// One iteration. Of the rows of each of `all` the `outliers` (a share) that cost most are left out; entries that
  /// nothing uses stay.
  /// @param done  called before each entry of `all`
  /// @return of each entry the greatest cost of a row that was not left out, of variances relative to the greatest one
  std::vector<double> fit(std::span<const TrellisSamples> all, double outliers,
                          const std::function<void(std::size_t)>& done = {});

 private:
  Backend* backend_;
  std::vector<float> books_;
};

}  // namespace kvs
