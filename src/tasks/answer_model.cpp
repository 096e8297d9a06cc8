// SPDX-License-Identifier: Apache-2.0
#include "tasks/answer_model.h"

#include <numeric>

#include "eval/cache_quality.h"
#include "eval/cached_run.h"
#include "eval/generation.h"

namespace kvs::inline tasks {

AnswerLikelihood CachedAnswers::likelihood(const Prompt& prompt, const AnsweredPrompt& answer) {
  Cache cache = make_(prompt);
  double nll = 0;
  // The last token is not run: no prediction after it is needed.
  const std::span<const std::int32_t> ids(answer.ids.data(), answer.ids.size() - 1);
  const CacheReport report = run_cached(*decoder_, cache, ids, {}, [&](const ResidualStream& group, std::size_t first) {
    if (first + group.tokens() < answer.first) return;
    std::vector<std::int32_t> targets(group.tokens(), -1);
    for (std::size_t t = std::max(first, answer.first - 1); t < first + group.tokens(); ++t)
      targets[t - first] = answer.ids[t + 1];
    const std::vector<float> each = decoder_->nll(group, targets);
    nll += std::accumulate(each.begin(), each.end(), 0.0);
  });
  return {-nll, static_cast<double>(report.peak.stored) / full_cache_bytes(decoder_->model().config(), ids.size())};
}

std::vector<std::int32_t> CachedAnswers::generate(const Prompt& prompt, std::size_t count,
                                                  const std::function<bool(std::int32_t)>& go_on) {
  Cache cache = make_(prompt);
  return kvs::generate(*decoder_, cache, prompt.ids, count, go_on).ids;
}

}  // namespace kvs::inline tasks
