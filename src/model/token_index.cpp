// SPDX-License-Identifier: Apache-2.0
#include "model/token_index.h"

#include <algorithm>
#include <numeric>

namespace kvs::inline model {
namespace {

constexpr std::size_t kIndexBlock = 128;  // tokens whose scores are held at a time
constexpr float kIndexEpsilon = 1e-6F;    // of the keys' norm, in every class of Transformers

/// Writes the positions of the `most` largest scores, the first of equals, ascending.
void best_positions(std::span<const float> scores, std::span<std::int32_t> chosen) {
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](std::int32_t at) { return scores[static_cast<std::size_t>(at)]; };
  if (order.size() > chosen.size()) {
    const auto last = order.begin() + static_cast<std::ptrdiff_t>(chosen.size());
    std::ranges::nth_element(order, last, [&](std::int32_t one, std::int32_t other) {
      return value(one) != value(other) ? value(one) > value(other) : one < other;
    });
    order.resize(chosen.size());
    std::ranges::sort(order);
  }
  std::ranges::fill(chosen, -1);
  std::ranges::copy(order, chosen.begin());
}

}  // namespace

/// Returns the keys of the new tokens: [member · token, dim].
std::vector<float> TokenIndex::make_keys(const Input& input) {
  const LayerStates& states = input.states;
  const BackendView<float, 2> keys = keys_.matrix(input.x.rows, input.config.dim);
  backend_->linear(input.x, *input.weights.key, keys, false);
  const BackendView<float, 4> heads = keys.reshape<4>({states.members(), 1, states.tokens(), input.config.dim});
  backend_->layer_norm_heads(heads, input.weights.norm.gain.view(), input.weights.norm.bias.view(), kIndexEpsilon);
  backend_->rope(heads, states.rope, states.first_position, RopeDirection::kForward, {});
  return download(*backend_, keys);
}

BackendView<float, 4> TokenIndex::make_queries(const Input& input) {
  const std::size_t members = input.states.members(), tokens = input.states.tokens(), dim = input.config.dim;
  const BackendView<float, 2> rows = projected_.matrix(input.x.rows, input.config.heads * dim);
  backend_->linear(input.latent, *input.weights.query, rows, false);
  const BackendView<float, 4> q = queries_.states({members, input.config.heads, tokens, dim}),
                              none = none_.states({members, 0, tokens, dim});
  backend_->split_heads(rows, q, none, none);
  backend_->rope(q, input.states.rope, input.states.first_position, RopeDirection::kForward, {});
  return q;
}

/// @param keys  of all positions: [position, dim];  @param weights  of the member's tokens: [token, head]
void TokenIndex::choose_for_member(const Input& input, std::size_t member, const std::vector<float>& keys,
                                   const BackendView<float, 4>& q, std::span<const float> weights,
                                   std::span<std::int32_t> chosen) {
  const auto [members, heads, tokens, dim] = q.shape();
  const std::size_t positions = keys.size() / dim, most = input.config.chosen;
  const auto read = [&, width = dim](std::size_t first, std::size_t count, std::span<float> out) {
    std::ranges::copy(std::span(keys).subspan(first * width, count * width), out.begin());
  };
  const std::unique_ptr<Weight> matrix =
      backend_->make_weight({.rows = positions, .columns = dim, .read = read, .bias = {}, .f32 = true});
  for (std::size_t first = 0; first < tokens; first += kIndexBlock) {
    const std::size_t count = std::min(kIndexBlock, tokens - first);
    std::vector<float> scores(count * positions);
    for (std::size_t head = 0; head < heads; ++head) {
      float* const rows = q.data() + ((member * heads + head) * tokens + first) * dim;
      const BackendView<float, 2> products = products_.matrix(count, positions);
      backend_->linear_f32(BackendView<const float, 2>({rows, count * dim}, {count, dim}), *matrix, products, false);
      const std::vector<float> found = download(*backend_, products);
      for (std::size_t n = 0; n < scores.size(); ++n)
        scores[n] += weights[(first + n / positions) * heads + head] * std::max(0.0F, found[n]);
    }
    for (std::size_t token = 0; token < count; ++token)
      best_positions(std::span(scores).subspan(token * positions, positions - tokens + first + token + 1),
                     chosen.subspan((first + token) * most, most));
  }
}

void refuse_dropped_tokens(const TokenIndexConfig& index, const LayerCache& cache, std::size_t tokens,
                           const std::string& where) {
  if (index.chosen == 0 || tokens <= index.chosen || cache.holds_every_token()) return;
  throw Error(ErrorCode::kUnsupported, where,
              "found a cache that drops or codes tokens, and a text of more than " + std::to_string(index.chosen) +
                  " tokens (index_topk), of which the model's index chooses those that are read; supported is: full");
}

std::vector<std::int32_t> TokenIndex::choose(const Input& input) {
  const LayerStates& states = input.states;
  const std::size_t members = states.members(), tokens = states.tokens(), dim = input.config.dim,
                    most = input.config.chosen;
  const std::size_t past = input.past == nullptr ? 0 : input.past->size();
  const bool reads_all = past / dim + tokens <= most;
  if (reads_all && !input.moves) return {};
  const std::vector<float> own = make_keys(input);
  std::vector<float> keys = input.past == nullptr ? std::vector<float>() : *input.past;
  if (input.moves) input.past->insert(input.past->end(), own.begin(), own.end());
  if (reads_all) return {};
  const BackendView<float, 4> q = make_queries(input);
  const BackendView<float, 2> by_head = weights_.matrix(input.x.rows, input.config.heads);
  backend_->linear(input.x, *input.weights.weight, by_head, false);
  const std::vector<float> weights = download(*backend_, by_head);
  std::vector<std::int32_t> chosen(members * tokens * most);
  for (std::size_t member = 0; member < members; ++member) {
    const auto begin = own.begin() + static_cast<std::ptrdiff_t>(member * tokens * dim);
    keys.resize(past);
    keys.insert(keys.end(), begin, begin + static_cast<std::ptrdiff_t>(tokens * dim));
    choose_for_member(input, member, keys, q, std::span(weights).subspan(member * tokens * input.config.heads),
                      std::span(chosen).subspan(member * tokens * most, tokens * most));
  }
  return chosen;
}

}  // namespace kvs::inline model
