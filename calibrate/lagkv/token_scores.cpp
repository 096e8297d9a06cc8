// SPDX-License-Identifier: Apache-2.0
#include "calibrate/lagkv/token_scores.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "caches/best_tokens.h"
#include "core/error.h"
#include "core/interrupt.h"

namespace kvs::inline calibrate {
namespace {

/// Appends one head's partitions.
void add_head(TokenScores& scores, HeadRows k, HeadRows v, const LagkvOptions& options) {
  const std::size_t lag = options.lag, head_dim = k.extent(1);
  for (std::size_t first = scores.first; first < scores.first + scores.tokens; first += lag) {
    const auto rows = [&](const HeadRows& states) {
      return HeadRows(states.span().subspan(first * head_dim, 2 * lag * head_dim), {2 * lag, head_dim});
    };
    const std::vector<double> of_partition = lagkv_scores(rows(k), rows(v), options);
    const std::size_t before = scores.kept.size();
    scores.kept.resize(before + lag, false);
    for (const std::size_t token : best_tokens(of_partition, options.kept())) scores.kept[before + token] = true;
    for (const double score : of_partition) scores.relative.push_back(score * static_cast<double>(lag) / 2);
  }
}

}  // namespace

TokenScores score_tokens(StateSource& source, std::size_t document, std::span<const std::size_t> layers,
                         const LagkvOptions& options) {
  const std::size_t least = options.sinks + 2 * options.lag, tokens = source.tokens();
  if (tokens < least)
    throw Error(ErrorCode::kData, "document " + std::to_string(document),
                "found " + std::to_string(tokens) + " tokens, expected at least S + 2L = " + std::to_string(least));
  TokenScores scores;
  scores.first = options.sinks;
  scores.tokens = ((tokens - options.sinks) / options.lag - 1) * options.lag;
  const StateNeeds needs{.layers = {layers.begin(), layers.end()}, .states = {StateKind::kKPost, StateKind::kV}};
  source.visit(document, needs, [&](const DocumentStates& states) {
    check_interrupt();
    const std::vector<float> k = download(source.backend(), states[StateKind::kKPost]),
                             v = download(source.backend(), states[StateKind::kV]);
    const auto [heads, count, head_dim] = states[StateKind::kV].shape();
    scores.heads.push_back(heads);
    for (std::size_t head = 0; head < heads; ++head) {
      const auto rows = [&](const std::vector<float>& of_heads) {
        return HeadRows(std::span(of_heads).subspan(head * count * head_dim, count * head_dim), {count, head_dim});
      };
      add_head(scores, rows(k), rows(v), options);
    }
  });
  return scores;
}

double head_overlap(const TokenScores& scores, std::size_t layer) {
  const std::size_t heads = scores.heads[layer];
  if (heads < 2) return 1;
  std::size_t pairs = 0, kept = 0;  // ordered pairs of heads, by token
  for (std::size_t token = 0; token < scores.tokens; ++token) {
    std::size_t count = 0;
    for (std::size_t head = 0; head < heads; ++head) count += scores.is_kept(layer, head, token) ? 1 : 0;
    pairs += count > 0 ? count * (count - 1) : 0;
    kept += count;
  }
  return static_cast<double>(pairs) / static_cast<double>(kept * (heads - 1));
}

TokenScoresResult scores_result(TokenScoresResult result, const TokenScores& scores) {
  constexpr double kDigits = 1e4;
  result.first_token = scores.first;
  result.tokens_scored = scores.tokens;
  for (std::size_t layer = 0; layer < result.layers.size(); ++layer) {
    auto& layer_scores = result.relative_score.emplace_back(scores.heads[layer]);
    auto& layer_kept = result.kept.emplace_back(scores.heads[layer]);
    for (std::size_t head = 0; head < scores.heads[layer]; ++head) {
      for (const double score : scores.row(layer, head))
        layer_scores[head].push_back(std::round(score * kDigits) / kDigits);
      for (std::size_t token = 0; token < scores.tokens; ++token)
        if (scores.is_kept(layer, head, token)) layer_kept[head].push_back(scores.first + token);
    }
    result.head_overlap.push_back(head_overlap(scores, layer));
  }
  return result;
}

}  // namespace kvs::inline calibrate
