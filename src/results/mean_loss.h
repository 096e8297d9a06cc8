// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <optional>

#include "io/finite.h"
#include "io/json_fields.h"

namespace kvs::inline results {

/// A mean NLL with its perplexity.
struct MeanLoss {
  std::optional<double> ppl = {};      // nullopt if it overflows a double
  double nll_mean = 0, nll_error = 0;  // nats; standard error over documents, or over the tokens of a single document

  /// Returns the mean NLL. Files of older versions hold only the perplexity.
  double nll() const { return nll_mean == 0 && ppl ? std::log(*ppl) : nll_mean; }
  static MeanLoss of(double nll, double error) { return {if_finite(std::exp(nll)), nll, error}; }
  static void fields(auto& of, auto&& field) {
    field("ppl", of.ppl);
    field.newer("nll_mean", of.nll_mean);
    field.newer("nll_error", of.nll_error);
  }
};

}  // namespace kvs::inline results
