#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "draw/chart.h"

namespace kvs {

/// Scores of a document's tokens, neighbouring tokens taken together.
struct TokenScoreMap {
  std::vector<std::string> rows;           // what each row is of: "3", or "3, head 0"
  std::vector<draw::Axis::Tick> layers;    // where layers are named, by row
  std::vector<std::size_t> first;          // first token of each column
  std::size_t width = 1;                   // tokens of a column
  std::vector<std::vector<double>> score;  // [row][column] the largest relative one
  std::vector<std::vector<double>> kept;   // [row][column] share of the tokens that stay
};
/// How many tokens a column takes, so that there are not too many columns.
std::size_t tokens_per_column(std::size_t tokens);

/// Two maps, one above the other.
draw::Chart token_score_chart(const std::string& heading, const TokenScoreMap& map, const std::string& row_name);

}  // namespace kvs
