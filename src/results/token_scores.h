#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "draw/chart.h"
#include "results/head.h"

namespace kvs {

/// LagKV's scores of one document's tokens and which tokens stay. Lists are [layer][head] by position in `layers`.
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
  std::vector<std::vector<std::vector<std::size_t>>> kept = {};       // positions of the tokens that stay
  std::vector<double> head_overlap = {};  // [layer] share of a head's kept tokens that another head keeps, too

  static void fields(auto& of, auto&& field) {
    field.inlined(of.head);
    field("document", of.document)("window", of.window)("method", of.method)("sinks", of.sinks)("lag", of.lag)(
        "ratio", of.ratio)("variant", of.variant)("layers", of.layers)("first_token", of.first_token)(
        "tokens_scored", of.tokens_scored)("relative_score", of.relative_score)("kept", of.kept)("head_overlap",
                                                                                                 of.head_overlap);
  }
  static void check(const TokenScoresResult& of, const JsonCursor& json);
  /// The mean over layers of `head_overlap`.
  double overlap() const;
};

std::string to_text(const TokenScoresResult& result);

/// A map of the scores above one of the tokens that stay, neighbouring tokens taken together: a row for each KV head,
/// or for each layer with the means over its heads.
enum class ScoreRows { kHeads, kLayers };
draw::Chart token_score_chart(const std::string& heading, const TokenScoresResult& result, ScoreRows rows);

}  // namespace kvs
