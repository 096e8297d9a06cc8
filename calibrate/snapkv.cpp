// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "caches/best_tokens.h"
#include "caches/token_rows.h"
#include "caches/token_steps.h"
#include "calibrate/common/sink_notes.h"
#include "calibrate/method.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

struct SnapkvOptions {
  std::size_t cache_size = 0;  // number of prefix tokens that are kept; more than window
  std::size_t window = 64;     // at most the prefix
  std::size_t kernel = 5;      // odd
};

/// Returns sums over `kernel` neighbours: pooled means times kernel, which have the same order.
std::vector<double> pooled(const std::vector<double>& mass, std::size_t kernel) {
  std::vector<double> sums(mass.size());
  const std::size_t reach = kernel / 2;
  for (std::size_t token = 0; token < mass.size(); ++token) {
    const std::size_t first = token - std::min(token, reach), last = std::min(mass.size(), token + reach + 1);
    for (std::size_t other = first; other < last; ++other) sums[token] += mass[other];
  }
  return sums;
}

/// The cache keeps the last `window` of a prefix's P tokens. Each KV head also keeps cache_size − window of the P −
/// window tokens before them, those with the most attention from the window's queries (the first of equals). Attention
/// means softmax weights over all keys that a query sees, summed over the window and the query heads that read the KV
/// head, after average pooling over `kernel` neighbours (zeros beyond both ends count). All later tokens are kept. Keys
/// keep their positions. The window's tokens attend one by one, the others at once. Source: Li et al. (2024), SnapKV,
/// arXiv:2404.14469, section 4. Deviation: heads of a group share one choice, because they share the cache.
class SnapkvCache final : public LayerCache {
 public:
  SnapkvCache(const SnapkvOptions& options, const KvTypes& types) : options_(options), rows_(types) {}

  std::size_t max_tokens_per_call() const noexcept override {
    return before_window() ? judged_ - rows_.count() : kUnlimited;
  }

  void attend(LayerStates& states, const Operand& out) override {
    rotate_at(states, states.first_position);
    if (in_prefix_ && !before_window())
      return for_each_token(states, out, [&](LayerStates& token, const Operand& row) { attend_in_window(token, row); });
    const PastKv past = rows_.add(states);
    attend_rows(states, past, out);
  }

  void begin_prefix(std::size_t tokens) override {
    judged_ = tokens - options_.window;
    in_prefix_ = true;
  }
  void end_prefix(Backend& backend) override {
    in_prefix_ = false;
    std::vector<std::vector<std::size_t>> kept;
    for (const std::vector<double>& mass : mass_)
      kept.push_back(
          best_tokens(pooled(mass, options_.kernel), std::min(judged_, options_.cache_size - options_.window)));
    compression(backend, [&] { rows_.keep(backend, 0, judged_, kept); });
    mass_.clear();
  }

  std::optional<FullStart> full_start(std::size_t prefix) const override {
    return {{prefix - options_.window, rows_.types()}};
  }
  CacheBytes bytes() const noexcept override { return rows_.bytes(); }

 private:
  bool before_window() const noexcept { return in_prefix_ && rows_.count() < judged_; }

  void attend_in_window(const LayerStates& states, const Operand& out) {
    const PastKv past = rows_.add(states);
    const std::vector<float> mass = attend_rows_with_mass(states, past, out);
    const std::size_t keys = rows_.count();
    mass_.resize(states.k.extent(1), std::vector<double>(judged_));
    for (std::size_t head = 0; head < mass_.size(); ++head)
      for (std::size_t row = 0; row < judged_; ++row) mass_[head][row] += double{mass[head * keys + row]};
  }

  SnapkvOptions options_;
  TokenRows rows_;
  std::vector<std::vector<double>> mass_;  // [kv_head][token before the window], from the window's queries so far
  std::size_t judged_ = 0;                 // number of prefix tokens before the window
  bool in_prefix_ = false;
};

std::unique_ptr<LayerCache> make_snapkv(Parameters& parameters, const CacheLayer& layer) {
  SnapkvOptions options;
  options.window = parameters.count(
      "window", "last tokens of the prefix, which stay and whose attention chooses the others", options.window, 1);
  options.cache_size =
      parameters.count("cache_size", "tokens of the prefix that stay", Parameters::kRequired, 1, options.window);
  options.kernel = parameters.count("kernel", "neighbours over which attention is pooled", options.kernel, 1);
  if (options.kernel % 2 == 0)
    parameters.refuse("kernel", "found " + std::to_string(options.kernel) + ", expected an odd number");
  (void)parameters.count("prefix", "first tokens, which are compressed once, at their end", Parameters::kRequired, 1,
                         options.window - 1);  // that it holds the window
  return std::make_unique<SnapkvCache>(options, layer.types);
}

/// Share of the prefix.
Json snapkv_for_share(double share, std::size_t tokens, const Json& settings) {
  return {{"cache_size", std::llround(share * static_cast<double>(shared_count(settings, "prefix", tokens)))}};
}

}  // namespace

constinit const Method kSnapkvMethod{
    .name = "snapkv",
    .title = "SnapKV",
    .summary = "the last tokens of a prefix and the tokens that they read most",
    .paper = {.authors = "Li, Huang, Yang, Venkitesh, Locatelli, Ye, Cai, Lewis, Chen",
              .title = "SnapKV: LLM Knows What You are Looking for Before Generation",
              .link = "https://arxiv.org/abs/2404.14469",
              .year = 2024},
    .prefill = Prefill::kWhole,
    .make = make_snapkv,
    .settings_for_share = snapkv_for_share,
    .reads_queries = true,
    .notes = mass_notes,
    .priority = 5,
};

}  // namespace kvs::inline calibrate
