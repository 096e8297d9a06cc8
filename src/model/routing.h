#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"

namespace kvs::inline model {

/// The tokens that go through one expert, with the weights of its outputs.
struct ExpertTokens {
  std::vector<std::int32_t> rows;
  std::vector<float> weights;  // [row of `rows`]
};

/// Chooses the experts of each token: the `chosen` largest scores, the first of equals.
/// @param logits  of the router: [token, expert]
/// @return [expert], rows ascending. Cost: tokens · experts · log(chosen).
/// Source: Shazeer et al. (2017), arXiv:1701.06538; Fedus et al. (2021), arXiv:2101.03961.
std::vector<ExpertTokens> route(const ExpertsConfig& experts, std::span<const float> logits);

}  // namespace kvs::inline model
