// SPDX-License-Identifier: Apache-2.0
#include "calibrate/triattention/cache.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "caches/best_tokens.h"
#include "caches/token_rows.h"
#include "calibrate/common/norm_order.h"
#include "calibrate/method.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

class TriattentionCache final : public LayerCache {
 public:
  TriattentionCache(const TriattentionOptions& options, const KvTypes& types,
                    std::shared_ptr<const FutureScores> scores)
      : options_(options), rows_(types), scores_(std::move(scores)) {}

  std::size_t max_tokens_per_call() const noexcept override {
    if (whole_) return kUnlimited;
    return rows_.count() < options_.cache_size ? options_.cache_size - rows_.count() : options_.interval;
  }

  void attend(LayerStates& states, const Operand& out) override {
    rotate_at(states, states.first_position);
    const bool alone = states.members() == 1;
    if (alone && !whole_ && rows_.count() >= options_.cache_size)
      compression(states.backend, [&] { compress(states.backend); });
    const PastKv past = rows_.add(states);
    attend_rows(states, past, out);
    if (alone) seen_ = states.first_position + states.tokens();
  }

  void begin_prefix(std::size_t) override { whole_ = true; }
  void end_prefix(Backend& backend) override {
    whole_ = false;
    if (rows_.count() > options_.cache_size) compression(backend, [&] { compress(backend); });
  }

  std::optional<FullStart> full_start(std::size_t prefix) const override {
    return {{prefix > 0 ? prefix : options_.cache_size, rows_.types()}};
  }
  CacheBytes bytes() const noexcept override { return rows_.bytes(); }

 private:
  void compress(Backend& backend) {
    if (!scores_) throw Error(ErrorCode::kInternal, "triattention", "a cache without statistics");
    const std::size_t held = rows_.count(), candidates = held - options_.sinks - options_.recent;
    const TokenRows::Part part = rows_.copy(backend, options_.sinks, candidates);
    const std::vector<float> keys = download(backend, part.k.view());
    const std::size_t heads = part.k.view().extent(1), values = keys.size() / heads;
    std::vector<std::vector<std::size_t>> kept;
    kept.reserve(heads);
    for (std::size_t head = 0; head < heads; ++head)
      kept.push_back(
          best_tokens(scores_->scores(std::span(keys).subspan(head * values, values), head, heads, seen_ - 1),
                      options_.kept() - options_.sinks - options_.recent));
    rows_.keep(backend, options_.sinks, candidates, kept);
  }

  TriattentionOptions options_;
  TokenRows rows_;
  std::shared_ptr<const FutureScores> scores_;
  std::size_t seen_ = 0;  // tokens
  bool whole_ = false;    // within a prefix
};

std::unique_ptr<LayerCache> make_triattention(Parameters& parameters, const CacheLayer& layer) {
  return make_triattention_cache(triattention_options(parameters), layer.types, nullptr);
}

/// An eighth of the tokens, and at most the paper's 128, come between two evictions.
Json triattention_for_share(double share, std::size_t tokens, const Json& settings) {
  Json size = cache_size_for_share(share, tokens, settings);
  size["interval"] = std::clamp<std::size_t>(size.at("cache_size").get<std::size_t>() / 8, 1, 128);
  return size;
}

std::string triattention_obstacle(const ModelConfig& model) {
  if (model.has_latents())
    return "found latent attention, whose heads read one row; expected keys of each KV head: their RoPE chunks are "
           "scored";
  return norm_order_obstacle(model);
}

void check_triattention_tensors(const Json& config, const std::filesystem::path& path) {
  (void)read_statistics(config, path);
}

}  // namespace

TriattentionOptions triattention_options(Parameters& parameters) {
  TriattentionOptions options;
  options.interval = parameters.count("interval", "tokens between two evictions", options.interval, 1);
  options.sinks = parameters.count("sinks", "first tokens, which stay", options.sinks, 0);
  options.recent = parameters.count("recent", "last tokens, which stay", options.recent, 0);
  options.horizon =
      parameters.count("horizon", "largest of the distances 1, 2, 4, … of the queries to expect", options.horizon, 1);
  options.cache_size =
      parameters.count("cache_size", "tokens that the cache holds at most; an eviction leaves `interval` fewer",
                       Parameters::kRequired, 1, options.interval + options.sinks + options.recent);
  return options;
}

std::unique_ptr<LayerCache> make_triattention_cache(const TriattentionOptions& options, const KvTypes& types,
                                                    std::shared_ptr<const FutureScores> scores) {
  return std::make_unique<TriattentionCache>(options, types, std::move(scores));
}

constinit const Method kTriattentionMethod{
    .name = "triattention",
    .title = "TriAttention",
    .summary = "the tokens that the mean queries of a text will read most from later positions",
    .paper = {.authors = "Mao, Lin, Huang, Xie, Fu, Zhuang, Han, Chen",
              .title = "TriAttention: Efficient Long Reasoning with Trigonometric KV Compression",
              .link = "https://arxiv.org/abs/2604.04921",
              .year = 2026},
    .prefill = Prefill::kEither,
    .make = make_triattention,
    .needs_files = true,
    .settings_for_share = triattention_for_share,
    .obstacle = triattention_obstacle,
    .check_tensors = check_triattention_tensors,
    .priority = 3,
};

}  // namespace kvs::inline calibrate
