// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"

namespace kvs::inline model {

/// The tokens that go through one expert, with the weights of its outputs.
struct ExpertTokens {
  std::vector<std::int32_t> rows;
  std::vector<float> weights;  // [row of `rows`]
};

/// Returns why the groups do not fit the experts; "" if they do.
std::string group_problem(const ExpertsConfig& experts);

/// Chooses the experts of each token: the `chosen` largest scores, the first of equals.
/// @param logits  of the router: [token, expert]
/// @param bias    added to the scores for the choice alone: [expert], or empty
/// @return [expert], rows ascending. Cost: tokens · experts · log(chosen).
/// Source: Shazeer et al. (2017), arXiv:1701.06538; groups and bias: DeepSeek-V3 (2024), arXiv:2412.19437,
/// section 2.1.2.
std::vector<ExpertTokens> route(const ExpertsConfig& experts, std::span<const float> logits,
                                std::span<const float> bias = {});

}  // namespace kvs::inline model
