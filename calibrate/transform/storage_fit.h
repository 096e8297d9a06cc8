// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "calibrate/transform/entropy_model.h"

namespace kvs::inline calibrate {

/// Rows of a group of layers that the storage form is fitted to.
struct StorageSamples {
  std::vector<float> rows;        // [row, coefficient], of unit variance; blocks of consecutive tokens
  std::vector<double> variances;  // [coefficient]: cost of a squared error; descending
  std::size_t block = 1;          // tokens of a block
  std::size_t tokens = 1;         // number of a document's tokens with codes

  std::size_t coefficients() const noexcept { return variances.size(); }
};

struct StorageFit {
  double step = 1;  // squared: the cost of an error of one step of any coefficient
  std::shared_ptr<const EntropyModel> model;
  std::vector<std::size_t> bytes;  // [group]: of a token, mean of the samples, rounded up
};

/// Called with the number of finished rounds and their total.
using StorageProgress = std::function<void(std::size_t done, std::size_t total)>;

/// Returns the step at which the samples' blocks take `bytes` for a document's tokens, and the model of their levels.
/// Rounds of coding: each fits the model to the levels of the previous one and moves the step by the secant method.
/// O(rounds · rows · coefficients).
StorageFit fit_storage(std::span<const StorageSamples> groups, double bytes, const StorageProgress& progress);

/// Returns a number of leading coefficients that includes all that are coded when they take `bytes` of a token. It is
/// an estimate for Gaussian coefficients that leaves room for four times this precision.
/// @param variances  descending
std::size_t most_coded(std::span<const double> variances, double bytes);

/// Returns the scale classes of the coefficients that are coded with a step: the first ones.
std::vector<std::uint8_t> coded_scales(std::span<const double> variances, double step);

}  // namespace kvs::inline calibrate
