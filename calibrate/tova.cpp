// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "caches/token_rows.h"
#include "caches/token_steps.h"
#include "calibrate/common/sink_notes.h"
#include "calibrate/method.h"

namespace kvs::inline calibrate {
namespace {

/// Just before a token that finds `cache_size` tokens, all KV heads of the layer drop the token with the least
/// attention of the last token's query (the oldest of equals). Attention is averaged over all query heads. The last
/// token itself can be that token. Keys keep their positions in the text. Tokens that do not fill the cache attend at
/// once, the others one by one: O(cache_size) per token, with the choice on the host. Only the last row moves, into the
/// dropped row's place. Source: Oren et al. (2024), Transformers are Multi-State RNNs, arXiv:2401.06104, section 4. The
/// paper counts the cache_size − 1 tokens that a token finds. Deviation: the authors' program drops tokens of a prompt
/// once, at its end; this cache drops them at each token, as the paper defines it for decoding.
///
/// Rows are in any order, the same in every head.
class TovaCache final : public LayerCache {
 public:
  TovaCache(std::size_t cache_size, const KvTypes& types) : cache_size_(cache_size), rows_(types) {}

  std::size_t max_tokens_per_call() const noexcept override {
    const std::size_t free = cache_size_ - rows_.count();
    return free > 1 ? free - 1 : kUnlimited;
  }

  void attend(LayerStates& states, const Operand& out) override {
    rotate_at(states, states.first_position);
    if (rows_.count() + states.tokens() < cache_size_) return attend_rows(states, add(states), out);
    for_each_token(states, out, [&](LayerStates& token, const Operand& row) { attend_token(token, row); });
  }

  std::optional<FullStart> full_start(std::size_t) const override { return {{cache_size_ - 1, rows_.types()}}; }
  CacheBytes bytes() const noexcept override {
    CacheBytes bytes = rows_.bytes();
    return bytes += {.used = positions_.size() * sizeof positions_[0]};
  }

 private:
  void attend_token(const LayerStates& states, const Operand& out) {
    if (rows_.count() == cache_size_) compression(states.backend, [&] { drop(states); });
    const PastKv past = add(states);
    least_ = least(attend_rows_with_mass(states, past, out));
  }

  PastKv add(const LayerStates& states) {
    const PastKv past = rows_.add(states);
    while (positions_.size() < rows_.count()) positions_.push_back(seen_++);
    return past;
  }

  void drop(const LayerStates& states) {
    positions_[least_] = positions_.back();
    positions_.pop_back();
    rows_.drop_each(states.backend, std::vector(states.k.extent(1), least_));
  }

  /// Returns the row of least weight.
  /// @param weights  [kv_head, row], each summed over the query heads that read the KV head
  std::size_t least(const std::vector<float>& weights) const {
    std::vector<std::pair<double, std::size_t>> order(rows_.count());  // weight, position
    for (std::size_t row = 0; row < order.size(); ++row) order[row].second = positions_[row];
    for (std::size_t n = 0; n < weights.size(); ++n) order[n % order.size()].first += double{weights[n]};
    return static_cast<std::size_t>(std::ranges::min_element(order) - order.begin());
  }

  std::size_t cache_size_;
  TokenRows rows_;
  std::vector<std::size_t> positions_;  // [row]
  std::size_t seen_ = 0;                // tokens
  std::size_t least_ = 0;               // row to drop when the cache is full
};

std::unique_ptr<LayerCache> make_tova(Parameters& parameters, const CacheLayer& layer) {
  return std::make_unique<TovaCache>(
      parameters.count("cache_size", "tokens that stay, with the new one", Parameters::kRequired, 2), layer.types);
}

}  // namespace

constinit const Method kTovaMethod{
    .name = "tova",
    .title = "TOVA",
    .summary = "the tokens with the most attention from the last one",
    .paper = {.authors = "Oren, Hassid, Yarden, Adi, Schwartz",
              .title = "Transformers are Multi-State RNNs",
              .link = "https://arxiv.org/abs/2401.06104",
              .year = 2024},
    .make = make_tova,
    .settings_for_share = cache_size_for_share,
    .reads_queries = true,
    .notes = mass_notes,
    .priority = 3,
};

}  // namespace kvs::inline calibrate
