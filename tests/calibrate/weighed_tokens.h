// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <vector>

#include "tests/calibrate/layer_harness.h"

namespace kvs::test {

/// Tokens of given weights, fed one at a time: a query gives each key the share of its weight in the sum over all keys
/// that it reads. Every token's value has its own channel, so the output shows which tokens were read.
class WeighedTokens {
 public:
  /// @param weights  [kv_head][token]
  WeighedTokens(LayerCache& cache, const std::vector<std::vector<double>>& weights)
      : heads_(weights.size()), tokens_(weights[0].size()), layer_(cache, heads_, tokens_) {
    for (const auto& head : weights) {
      for (std::size_t token = 0; token < tokens_; ++token) {
        k_.push_back(head[token] > 0 ? static_cast<float>(std::log(head[token])) : -1e6F);
        k_.resize(k_.size() + tokens_ - 1);
        for (std::size_t channel = 0; channel < tokens_; ++channel) v_.push_back(channel == token ? 1.0F : 0.0F);
      }
    }
  }

  Backend& backend() const noexcept { return layer_.backend(); }
  void feed(std::size_t count) {
    for (std::size_t n = 0; n < count; ++n) layer_.feed(k_, v_, tokens_, next_++, 1);
  }
  /// Feeds a token whose queries read all tokens equally. @return the tokens that they read, ascending, [kv_head]
  std::vector<std::vector<std::size_t>> feed_and_see() {
    const std::vector<float> mixed = layer_.feed(k_, v_, tokens_, next_++, 0);
    std::vector<std::vector<std::size_t>> read(heads_);
    for (std::size_t i = 0; i < mixed.size(); ++i)
      if (mixed[i] > 0) read[i / tokens_].push_back(i % tokens_);
    return read;
  }

 private:
  std::size_t heads_, tokens_;
  LayerHarness layer_;
  std::vector<float> k_, v_;
  std::size_t next_ = 0;
};

}  // namespace kvs::test
