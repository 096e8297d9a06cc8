// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "model/decoder.h"
#include "tasks/prompt.h"

namespace kvs::inline tasks {

/// Probability of an answer after its prompt.
struct AnswerLikelihood {
  double log_likelihood = 0;  // natural; of all tokens of the answer
  double bytes_ratio = 0;     // largest memory of the cache, relative to the full cache after as many tokens
};

/// Answers questions.
class AnswerModel {
 public:
  virtual ~AnswerModel() = default;
  virtual AnswerLikelihood likelihood(const Prompt& prompt, const AnsweredPrompt& answer) = 0;
  /// Returns the most probable continuation of prompt.ids, up to `count` tokens or until `go_on` returns false.
  virtual std::vector<std::int32_t> generate(const Prompt& prompt, std::size_t count,
                                             const std::function<bool(std::int32_t)>& go_on) = 0;
};

/// A model with a cache.
class CachedAnswers final : public AnswerModel {
 public:
  /// @param make  creates a fresh cache for a prompt
  CachedAnswers(Decoder& decoder, std::function<Cache(const Prompt&)> make)
      : decoder_(&decoder), make_(std::move(make)) {}

  AnswerLikelihood likelihood(const Prompt& prompt, const AnsweredPrompt& answer) override;
  std::vector<std::int32_t> generate(const Prompt& prompt, std::size_t count,
                                     const std::function<bool(std::int32_t)>& go_on) override;

 private:
  Decoder* decoder_;
  std::function<Cache(const Prompt&)> make_;
};

}  // namespace kvs::inline tasks
