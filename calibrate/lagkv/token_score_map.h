#pragma once

#include <cstddef>
#include <span>

#include "calibrate/lagkv/token_scores.h"
#include "results/token_score_chart.h"

namespace kvs {

/// A row for each layer and KV head. @param layers  the model's, by position
TokenScoreMap token_score_map(const TokenScores& scores, std::span<const std::size_t> layers);

}  // namespace kvs
