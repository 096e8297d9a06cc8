// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>

#include "caches/best_tokens.h"
#include "caches/full.h"
#include "caches/token_rows.h"
#include "calibrate/lagkv/lagkv_scores.h"
#include "calibrate/method.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

/// When base + 2L rows are present (base = S initially) and the tokens that brought them have attended, rows [base,
/// base + L) are scored against the next L rows (lagkv_scores()). The ⌊rL⌋ best of them are kept in each KV head (the
/// first of equals), and base grows by that number.
class LagkvCache final : public LayerCache {
 public:
  LagkvCache(const LagkvOptions& options, const KvTypes& types)
      : options_(options), rows_(types), base_(options.sinks) {}

  std::size_t max_tokens_per_call() const noexcept override {
    return whole_ ? kUnlimited : base_ + 2 * options_.lag - rows_.count();
  }

  void attend(LayerStates& states, const Operand& out) override {
    if (states.tokens() > max_tokens_per_call())
      throw Error(ErrorCode::kInternal, "cache", "more tokens at once than there is room");
    rotate_at(states, states.first_position);
    const PastKv past = rows_.add(states);
    attend_rows(states, past, out);
    if (states.members() > 1) return;
    peak_ = rows_.bytes();
    if (max_tokens_per_call() == 0) compression(states.backend, [&] { compress(states.backend); });
  }

  void begin_prefix(std::size_t) override { whole_ = true; }
  void end_prefix(Backend& backend) override {
    whole_ = false;
    while (rows_.count() >= base_ + 2 * options_.lag) compression(backend, [&] { compress(backend); });
    peak_ = rows_.bytes();
  }

  std::optional<FullStart> full_start(std::size_t prefix) const override {
    return {{prefix > 0 ? prefix : base_ + 2 * options_.lag, rows_.types()}};
  }
  CacheBytes bytes() const noexcept override { return rows_.bytes(); }
  CacheBytes peak() const noexcept override { return peak_; }

 private:
  void compress(Backend& backend) {
    const TokenRows::Part part = rows_.copy(backend, base_, 2 * options_.lag);
    const std::vector<float> k = download(backend, part.k.view()), v = download(backend, part.v.view());
    const auto [members, heads, tokens, head_dim] = part.k.view().shape();
    std::vector<std::vector<std::size_t>> kept(heads);
    for (std::size_t head = 0; head < heads; ++head) {
      const auto rows = [&](const std::vector<float>& states) {
        return HeadRows(std::span(states).subspan(head * tokens * head_dim, tokens * head_dim), {tokens, head_dim});
      };
      kept[head] = best_tokens(lagkv_scores(rows(k), rows(v), options_), options_.kept());
    }
    rows_.keep(backend, base_, options_.lag, kept);
    base_ += options_.kept();
  }

  LagkvOptions options_;
  TokenRows rows_;
  CacheBytes peak_;
  std::size_t base_;
  bool whole_ = false;  // within a prefix
};

std::unique_ptr<LayerCache> make_lagkv(Parameters& parameters, const CacheLayer& layer) {
  static constexpr std::string_view kVariants[] = {"lag", "local", "l2"};
  constexpr std::size_t kUntouchedByL2 = 2;  // layers
  constexpr double kMaxWeight = 1e6;
  LagkvOptions options;
  options.sinks = parameters.count("sinks", "first tokens that stay", options.sinks, 0);
  options.lag = parameters.count("lag", "tokens in a partition", options.lag, 1);
  options.ratio = parameters.real("ratio", "share of a partition that stays", options.ratio, 0, 1);
  if (options.kept() == 0)
    parameters.refuse("ratio", "found " + Json(options.ratio).dump() + ", which keeps none of " +
                                   std::to_string(options.lag) + " tokens, expected one that keeps some");
  options.variant = static_cast<LagkvVariant>(parameters.choice(
      "variant",
      "lag: scale a partition by the range of the next; local: by its own range; l2: score by the norm of keys",
      kVariants));
  options.value_weight =
      parameters.real("value_weight", "weight of the values' score relative to the keys' score (not in the paper)",
                      options.value_weight, 0, kMaxWeight);
  if (options.variant == LagkvVariant::kL2 && layer.index < kUntouchedByL2) return make_full_cache(layer.types);
  return std::make_unique<LagkvCache>(options, layer.types);
}

/// Returns the ratio that keeps a whole number of tokens of each partition.
Json lagkv_for_share(double share, std::size_t, const Json& settings) {
  LagkvOptions options;
  options.lag = std::max<std::size_t>(1, shared_count(settings, "lag", options.lag));
  const auto lag = static_cast<double>(options.lag), kept = std::round(share * lag);
  options.ratio = kept / lag;
  if (static_cast<double>(options.kept()) < kept) options.ratio = std::nextafter(options.ratio, 1.0);
  return {{"ratio", options.ratio}};
}

}  // namespace

constinit const Method kLagkvMethod{
    .name = "lagkv",
    .title = "LagKV",
    .summary = "the tokens of each partition that differ most from the next partition",
    .paper = {.authors = "Liang, Zhang, Li, Li",
              .title = "LagKV: Lag-Relative Information of the KV Cache Tells Which Tokens Are Important",
              .link = "https://arxiv.org/abs/2504.04704",
              .year = 2025},
    .prefill = Prefill::kEither,
    .make = make_lagkv,
    .settings_for_share = lagkv_for_share,
    .priority = 6,
};

}  // namespace kvs::inline calibrate
