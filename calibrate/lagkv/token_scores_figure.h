#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "calibrate/lagkv/token_scores.h"
#include "draw/figure.h"

namespace kvs {

/// Two maps (layer and KV head) × token: the largest relative score of a few neighbouring tokens, and the share of them
/// that stays.
/// @param layers  the model's, by position
FigureImages render_token_scores(const std::string& heading, std::span<const std::size_t> layers,
                                 const TokenScores& scores);

}  // namespace kvs
