// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "draw/chart.h"
#include "results/head.h"

namespace kvs::inline results {

/// LagKV's scores of the tokens of one document, and the tokens that are kept. Lists are [layer][head]; layers are
/// indexed by position in `layers`.
struct TokenScoresResult {
  ResultHead head = {};
  std::size_t document = 0, window = 0;
  std::string method = "lagkv";
  std::size_t sinks = 0, lag = 0;
  double ratio = 0;
  std::string variant = {};
  std::vector<std::size_t> layers = {};
  std::size_t first_token = 0, tokens_scored = 0;
  std::vector<std::vector<std::vector<double>>> relative_score = {};  // [token] from first_token on; 1: uniform
  std::vector<std::vector<std::vector<std::size_t>>> kept = {};       // positions of the kept tokens
  std::vector<double> head_overlap = {};  // [layer]: share of a head's kept tokens that another head also keeps

  static void fields(auto& of, auto&& field) {
    field.inlined(of.head);
    field("document", of.document)("window", of.window)("method", of.method)("sinks", of.sinks)("lag", of.lag)(
        "ratio", of.ratio)("variant", of.variant)("layers", of.layers)("first_token", of.first_token)(
        "tokens_scored", of.tokens_scored)("relative_score", of.relative_score)("kept", of.kept)("head_overlap",
                                                                                                 of.head_overlap);
  }
  static void check(const TokenScoresResult& of, const JsonCursor& json);
  /// Returns the heading of the figure.
  std::string heading() const;
  /// Returns the mean of `head_overlap` over layers.
  double overlap() const;
};

std::string to_text(const TokenScoresResult& result);

/// The rows of token_score_chart(): one for each KV head, or one for each layer with the means over its heads. The
/// chart shows a map of the scores above a map of the kept tokens. Neighbouring tokens share a column.
enum class ScoreRows { kHeads, kLayers };
draw::Chart token_score_chart(const std::string& heading, const TokenScoresResult& result, ScoreRows rows);

}  // namespace kvs::inline results
