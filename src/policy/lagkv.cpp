#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "core/error.h"
#include "policy/best_tokens.h"
#include "policy/cache_method.h"
#include "policy/full.h"
#include "policy/token_rows.h"

namespace kvs {
namespace {

using Rows = TensorView<const float, 2>;  // [token, head_dim]

/// kLag: a partition is scaled by the range of the next one. kLocal: by its own. kL2: it is scored by −‖k‖₂ instead
/// (but in layers 0 and 1, which the source leaves alone in that variant).
enum class LagkvVariant { kLag, kLocal, kL2 };

struct LagkvOptions {
  std::size_t sinks = 16;  // S: tokens at the start that stay
  std::size_t lag = 128;   // L: tokens of a partition
  double ratio = 0.25;     // r: ⌊rL⌋ of a partition's tokens stay
  LagkvVariant variant = LagkvVariant::kLag;
};

std::size_t kept_per_partition(const LagkvOptions& options) {
  return static_cast<std::size_t>(options.ratio * static_cast<double>(options.lag));
}

Rows partition(Rows rows, std::size_t first, std::size_t count) {
  const std::size_t head_dim = rows.extent(1);
  return {rows.span().subspan(first * head_dim, count * head_dim), {count, head_dim}};
}

/// scores[t] += softmax over t of the standard deviation over channels of (x − min)/(max − min), min and max per
/// channel over `reference`.
void add_scores(Rows x, Rows reference, std::vector<double>& scores) {
  const auto [tokens, channels] = x.shape();
  std::vector<double> low(channels, std::numeric_limits<double>::infinity()), factor(channels, 0.0);
  std::vector<double> high(channels, -std::numeric_limits<double>::infinity());
  for (std::size_t token = 0; token < tokens; ++token) {
    for (std::size_t channel = 0; channel < channels; ++channel) {
      low[channel] = std::min(low[channel], double{reference(token, channel)});
      high[channel] = std::max(high[channel], double{reference(token, channel)});
    }
  }
  for (std::size_t channel = 0; channel < channels; ++channel)
    if (high[channel] > low[channel]) factor[channel] = 1.0 / (high[channel] - low[channel]);

  std::vector<double> deviation(tokens), scaled(channels);
  for (std::size_t token = 0; token < tokens; ++token) {
    for (std::size_t channel = 0; channel < channels; ++channel)
      scaled[channel] = factor[channel] * (x(token, channel) - low[channel]);
    const double mean = std::accumulate(scaled.begin(), scaled.end(), 0.0) / static_cast<double>(channels);
    double squares = 0;
    for (const double value : scaled) squares += (value - mean) * (value - mean);
    deviation[token] = channels > 1 ? std::sqrt(squares / static_cast<double>(channels - 1)) : 0.0;
  }
  const double largest = *std::ranges::max_element(deviation);
  double sum = 0;
  for (double& value : deviation) sum += value = std::exp(value - largest);
  for (std::size_t token = 0; token < tokens; ++token) scores[token] += deviation[token] / sum;
}

/// Of the first L of 2L tokens.
std::vector<double> partition_scores(Rows k, Rows v, const LagkvOptions& options) {
  const std::size_t lag = options.lag;
  std::vector<double> scores(lag, 0.0);
  if (options.variant == LagkvVariant::kL2) {
    for (std::size_t token = 0; token < lag; ++token)
      for (const float value : k.slice(token).span()) scores[token] -= double{value} * value;
  } else {
    const std::size_t reference = options.variant == LagkvVariant::kLag ? lag : 0;
    add_scores(partition(k, 0, lag), partition(k, reference, lag), scores);
    add_scores(partition(v, 0, lag), partition(v, reference, lag), scores);
  }
  if (std::ranges::any_of(scores, [](double score) { return !std::isfinite(score); }))
    throw Error(ErrorCode::kData, "lagkv", "found a score that is not finite, expected finite states");
  return scores;
}

/// When base + 2L rows are there (base = S at first), the tokens that brought them having attended, rows
/// [base, base + L) are scored against the next L, and the ⌊rL⌋ best of them stay in each KV head (the first of equal
/// ones); base grows by as many. Score = softmax over the partition's tokens of the unbiased standard deviation over
/// channels of the scaled state, of the keys after RoPE plus of the values; in double.
/// Source: LagKV, section 3. Deviation: a channel that is constant in the reference contributes 0, where the public
/// code divides by zero.
class LagkvCache final : public LayerCache {
 public:
  LagkvCache(const LagkvOptions& options, const StateStore& store)
      : options_(options), rows_(store), base_(options.sinks) {}

  std::size_t room() const noexcept override { return whole_ ? kUnlimited : base_ + 2 * options_.lag - rows_.count(); }

  void attend(LayerStates& states, const Operand& out) override {
    if (states.tokens() > room()) throw Error(ErrorCode::kInternal, "cache", "more tokens at once than there is room");
    rotate_at(states, states.first_position);
    const KeyRows past = rows_.add(states);
    attend_rows(states, past, out);
    if (states.members() > 1) return;
    peak_ = rows_.bytes();
    if (room() == 0) compression(states.backend, [&] { compress(states.backend); });
  }

  void begin_prefix(std::size_t) override { whole_ = true; }
  void end_prefix(Backend& backend) override {
    whole_ = false;
    while (rows_.count() >= base_ + 2 * options_.lag) compression(backend, [&] { compress(backend); });
    peak_ = rows_.bytes();
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
        return Rows(std::span(states).subspan(head * tokens * head_dim, tokens * head_dim), {tokens, head_dim});
      };
      kept[head] = best_tokens(partition_scores(rows(k), rows(v), options_), kept_per_partition(options_));
    }
    rows_.keep(backend, base_, options_.lag, kept);
    base_ += kept_per_partition(options_);
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
  LagkvOptions options;
  options.sinks = parameters.count("sinks", options.sinks, 0);
  options.lag = parameters.count("lag", options.lag, 1);
  options.ratio = parameters.real("ratio", options.ratio, 0, 1);
  if (kept_per_partition(options) == 0)
    parameters.refuse("ratio", "found " + Json(options.ratio).dump() + ", which keeps none of " +
                                   std::to_string(options.lag) + " tokens, expected one that keeps some");
  options.variant = static_cast<LagkvVariant>(parameters.choice("variant", kVariants));
  if (options.variant == LagkvVariant::kL2 && layer.index < kUntouchedByL2) return make_full_cache(layer.store);
  return std::make_unique<LagkvCache>(options, layer.store);
}

/// The ratio of a whole number of tokens of each partition.
Json sized_lagkv(double share, std::size_t, const Json& settings) {
  LagkvOptions options;
  options.lag = settings.value("lag", options.lag);
  const auto lag = static_cast<double>(options.lag), kept = std::round(share * lag);
  options.ratio = kept / lag;
  if (static_cast<double>(kept_per_partition(options)) < kept) options.ratio = std::nextafter(options.ratio, 1.0);
  return {{"ratio", options.ratio}};
}

}  // namespace

constinit const CacheMethod kLagkvMethod{"lagkv", Prefill::kEither, make_lagkv, true, sized_lagkv};

}  // namespace kvs
