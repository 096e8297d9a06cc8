// SPDX-License-Identifier: Apache-2.0
#include <tuple>
#include <vector>

#include "caches/token_rows.h"
#include "caches/token_steps.h"
#include "calibrate/common/sink_notes.h"
#include "calibrate/method.h"

namespace kvs::inline calibrate {
namespace {

struct H2oOptions {
  std::size_t cache_size = 0;
  std::size_t recent = 0;  // at least 1, fewer than cache_size
};

/// Just before a token that finds `cache_size` tokens, each KV head drops a token that is not among the `recent` last
/// ones: that of the least attention mass, the first of equals. A token's mass is the sum of softmax weights over all
/// queries since it came and over the query heads that read the KV head. Keys keep their positions in the text.
/// O(cache_size) per token, with the choice on the host. Only the last row moves, into the dropped row's place. Source:
/// Zhang et al. (2023), H2O, arXiv:2306.14048, algorithm 1. Deviation: heads of a group share one mass, because they
/// share the cache.
///
/// Rows are in any order; each head has the same number.
class H2oCache final : public LayerCache {
 public:
  H2oCache(const H2oOptions& options, const KvTypes& types) : options_(options), rows_(types) {}

  void attend(LayerStates& states, const Operand& out) override {
    rotate_at(states, states.first_position);
    for_each_token(states, out, [&](LayerStates& token, const Operand& row) { attend_token(token, row); });
  }

  std::optional<FullStart> full_start(std::size_t) const override {
    return {{options_.cache_size, rows_.types(), StartKind::kByToken}};
  }
  CacheBytes bytes() const noexcept override {
    const std::size_t values = slots_.size() * rows_.count();
    CacheBytes bytes = rows_.bytes();
    return bytes += {.stored = values * CacheBytes::kStoredValue, .used = values * sizeof(Slot)};
  }

 private:
  /// State of a row.
  struct Slot {
    double mass = 0;
    std::size_t position = 0;
  };

  void attend_token(const LayerStates& states, const Operand& out) {
    if (rows_.count() == options_.cache_size) compression(states.backend, [&] { drop(states); });
    const PastKv past = rows_.add(states);
    const std::vector<float> mass = attend_rows_with_mass(states, past, out);
    const std::size_t keys = rows_.count();
    slots_.resize(states.k.extent(1));
    for (std::size_t head = 0; head < slots_.size(); ++head) {
      slots_[head].push_back({.position = states.first_position});
      for (std::size_t row = 0; row < keys; ++row) slots_[head][row].mass += double{mass[head * keys + row]};
    }
  }

  void drop(const LayerStates& states) {
    std::vector<std::size_t> rows;
    for (std::vector<Slot>& slots : slots_) {
      rows.push_back(least(slots, states.first_position));
      slots[rows.back()] = slots.back();
      slots.pop_back();
    }
    rows_.drop_each(states.backend, rows);
  }

  /// Returns the row to drop for the token at `position`.
  std::size_t least(const std::vector<Slot>& slots, std::size_t position) const {
    std::size_t found = slots.size();
    for (std::size_t row = 0; row < slots.size(); ++row) {
      if (slots[row].position + options_.recent >= position) continue;
      const auto rank = [&](std::size_t of) { return std::tuple(slots[of].mass, slots[of].position); };
      if (found == slots.size() || rank(row) < rank(found)) found = row;
    }
    return found;
  }

  H2oOptions options_;
  TokenRows rows_;
  std::vector<std::vector<Slot>> slots_;  // [kv_head][row]
};

std::unique_ptr<LayerCache> make_h2o(Parameters& parameters, const CacheLayer& layer) {
  H2oOptions options;
  options.recent = parameters.count("recent", "last tokens, which stay", Parameters::kRequired, 1);
  options.cache_size = parameters.count("cache_size", "tokens that stay, with the recent ones", Parameters::kRequired,
                                        1, options.recent);
  return std::make_unique<H2oCache>(options, layer.types);
}

/// Half of the tokens are the most recent ones, as in the paper.
Json h2o_for_share(double share, std::size_t tokens, const Json&) {
  const auto kept = std::llround(share * static_cast<double>(tokens));
  return {{"cache_size", kept}, {"recent", kept / 2}};
}

}  // namespace

constinit const Method kH2oMethod{
    .name = "h2o",
    .title = "H2O",
    .summary = "the last tokens and those with the most attention so far",
    .paper = {.authors = "Zhang, Sheng, Zhou, Chen, Zheng, Cai, Song, Tian, Ré, Barrett, Wang, Chen",
              .title = "H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models",
              .link = "https://arxiv.org/abs/2306.14048",
              .year = 2023},
    .make = make_h2o,
    .settings_for_share = h2o_for_share,
    .reads_queries = true,
    .notes = mass_notes,
    .priority = 2,
};

}  // namespace kvs::inline calibrate
