#include "policy/lagkv.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "core/error.h"
#include "policy/best_tokens.h"
#include "policy/full.h"
#include "policy/token_rows.h"

namespace kvs {
namespace {

using Rows = TensorView<const float, 2>;  // [token, head_dim]

void check(const LagkvOptions& options) {
  if (options.lag == 0) throw Error(ErrorCode::kUsage, "lag", "found 0, expected at least 1");
  if (!(options.ratio >= 0 && options.ratio <= 1))
    throw Error(ErrorCode::kUsage, "ratio", "found " + std::to_string(options.ratio) + ", expected 0 to 1");
}

std::size_t kept_per_partition(const LagkvOptions& options) {
  return static_cast<std::size_t>(options.ratio * static_cast<double>(options.lag));
}

/// Whole partitions after the sinks.
std::size_t partitions(std::size_t tokens, const LagkvOptions& options) {
  return tokens > options.sinks ? (tokens - options.sinks) / options.lag : 0;
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

std::vector<double> partition_scores(Rows k, Rows v, std::size_t first, const LagkvOptions& options) {
  const std::size_t lag = options.lag;
  std::vector<double> scores(lag, 0.0);
  if (options.variant == LagkvVariant::kL2) {
    for (std::size_t token = 0; token < lag; ++token)
      for (const float value : k.slice(first + token).span()) scores[token] -= double{value} * value;
  } else {
    const std::size_t reference = options.variant == LagkvVariant::kLag ? first + lag : first;
    add_scores(partition(k, first, lag), partition(k, reference, lag), scores);
    add_scores(partition(v, first, lag), partition(v, reference, lag), scores);
  }
  if (std::ranges::any_of(scores, [](double score) { return !std::isfinite(score); }))
    throw Error(ErrorCode::kData, "lagkv", "found a score that is not finite, expected finite states");
  return scores;
}

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
      kept[head] = best_tokens(partition_scores(rows(k), rows(v), 0, options_), kept_per_partition(options_));
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
  return make_lagkv_cache(options, layer.store);
}

}  // namespace

std::unique_ptr<LayerCache> make_lagkv_cache(const LagkvOptions& options, const StateStore& store) {
  check(options);
  return std::make_unique<LagkvCache>(options, store);
}

std::vector<std::vector<std::size_t>> lagkv_keep(TensorView<const float, 3> k, TensorView<const float, 3> v,
                                                 const LagkvOptions& options) {
  check(options);
  if (k.shape() != v.shape()) throw Error(ErrorCode::kInternal, "lagkv", "shapes of k and v differ");
  const std::size_t tokens = k.extent(1), whole = partitions(tokens, options), kept = kept_per_partition(options);
  std::vector<std::vector<std::size_t>> result(k.extent(0));
  for (std::size_t head = 0; head < result.size(); ++head) {
    std::vector<std::size_t>& keep = result[head];
    const std::size_t compressed = whole < 2 ? 0 : whole - 1;
    const std::size_t tail = compressed == 0 ? 0 : options.sinks + compressed * options.lag;
    if (compressed > 0) keep.resize(options.sinks);
    std::iota(keep.begin(), keep.end(), std::size_t{0});
    for (std::size_t p = 0; p < compressed; ++p) {
      const std::size_t first = options.sinks + p * options.lag;
      const std::vector<double> scores = partition_scores(k.slice(head), v.slice(head), first, options);
      for (const std::size_t token : best_tokens(scores, kept)) keep.push_back(first + token);
    }
    for (std::size_t token = tail; token < tokens; ++token) keep.push_back(token);
  }
  return result;
}

std::size_t lagkv_length(std::size_t tokens, const LagkvOptions& options) {
  check(options);
  const std::size_t whole = partitions(tokens, options);
  if (whole < 2) return tokens;
  return tokens - (whole - 1) * (options.lag - kept_per_partition(options));
}

std::optional<double> lagkv_ratio(std::size_t tokens, std::size_t budget, const LagkvOptions& options) {
  check({options.sinks, options.lag, 0, options.variant});
  const std::size_t whole = partitions(tokens, options);
  if (budget >= tokens) return 1.0;
  if (whole < 2) return std::nullopt;
  const std::size_t fixed = tokens - (whole - 1) * options.lag;
  if (budget < fixed) return std::nullopt;
  const std::size_t kept = (budget - fixed) / (whole - 1);
  const double ratio = static_cast<double>(kept) / static_cast<double>(options.lag);
  // n/L · L may round to just below n, which the floor would take for n − 1.
  const bool short_of = ratio * static_cast<double>(options.lag) < static_cast<double>(kept);
  return short_of ? std::nextafter(ratio, 2.0) : ratio;
}

constinit const CacheMethod kLagkvMethod{"lagkv", Prefill::kEither, make_lagkv};

}  // namespace kvs
