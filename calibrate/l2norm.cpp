// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "caches/best_tokens.h"
#include "caches/full.h"
#include "caches/token_rows.h"
#include "calibrate/common/norm_order.h"
#include "calibrate/method.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

/// Keeps the ⌊ratio · P⌋ tokens of a prefix of P whose keys are shortest in each KV head (the first of equals), and all
/// later tokens. Lengths are those before RoPE, which preserves them up to rounding: equal tokens of the first layer
/// have equal keys. After norms that follow RoPE lengths say nothing. Source: Devoto et al. (2024), "A Simple and
/// Effective L2 Norm-Based Strategy for KV Cache Compression", arXiv:2406.11430.
class L2normCache final : public LayerCache {
 public:
  L2normCache(double ratio, const KvTypes& types) : ratio_(ratio), rows_(types) {}

  void attend(LayerStates& states, const Operand& out) override {
    if (in_prefix_) note_lengths(states);
    rotate_at(states, states.first_position);
    const PastKv past = rows_.add(states);
    attend_rows(states, past, out);
  }

  void begin_prefix(std::size_t) override { in_prefix_ = true; }
  void end_prefix(Backend& backend) override {
    in_prefix_ = false;
    compression(backend, [&] { keep_shortest(backend); });
    scores_.clear();
  }

  std::optional<FullStart> full_start(std::size_t prefix) const override { return {{prefix, rows_.types()}}; }
  CacheBytes bytes() const noexcept override { return rows_.bytes(); }

 private:
  void keep_shortest(Backend& backend) {
    const std::size_t tokens = rows_.count(), kept = static_cast<std::size_t>(ratio_ * static_cast<double>(tokens));
    if (kept == 0)
      throw Error(ErrorCode::kData, "l2norm",
                  "found a ratio of " + std::to_string(ratio_) + ", which keeps none of a prefix of " +
                      std::to_string(tokens) + " tokens, expected one that keeps some");
    std::vector<std::vector<std::size_t>> shortest;
    for (const std::vector<double>& scores : scores_) shortest.push_back(best_tokens(scores, kept));
    rows_.keep(backend, 0, tokens, shortest);
  }

  void note_lengths(const LayerStates& states) {
    const std::vector<float> keys = download(states.backend, states.k);
    const std::size_t heads = states.k.extent(1), tokens = states.tokens(), head_dim = states.k.extent(3);
    scores_.resize(heads);
    auto key = keys.begin();
    for (std::size_t head = 0; head < heads; ++head)
      for (std::size_t token = 0; token < tokens; ++token, key += static_cast<std::ptrdiff_t>(head_dim))
        scores_[head].push_back(-std::inner_product(key, key + static_cast<std::ptrdiff_t>(head_dim), key, 0.0));
  }

  double ratio_;
  TokenRows rows_;
  std::vector<std::vector<double>> scores_;  // [kv_head][token of the prefix] −‖k‖²
  bool in_prefix_ = false;
};

std::unique_ptr<LayerCache> make_l2norm(Parameters& parameters, const CacheLayer& layer) {
  const double ratio = parameters.real("ratio", "share of the prefix that stays", 0.5, 0, 1);
  const auto skipped = parameters.indices("skip_layers", "layers that keep every token", {0, 1}, parameters.layers());
  if (std::ranges::find(skipped, layer.index) != skipped.end()) return make_full_cache(layer.types);
  return std::make_unique<L2normCache>(ratio, layer.types);
}

Json l2norm_for_share(double share, std::size_t, const Json&) { return {{"ratio", share}}; }

}  // namespace

constinit const Method kL2normMethod{
    .name = "l2norm",
    .title = "the L2 norm",
    .summary = "the tokens of a prefix that have the shortest keys",
    .paper = {.authors = "Devoto, Zhao, Scardapane, Minervini",
              .title = "A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression",
              .link = "https://arxiv.org/abs/2406.11430",
              .year = 2024},
    .prefill = Prefill::kWhole,
    .make = make_l2norm,
    .settings_for_share = l2norm_for_share,
    .obstacle = norm_order_obstacle,
    .priority = 10,
};

}  // namespace kvs::inline calibrate
