// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/layer_budget.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>

#include "core/error.h"
#include "eval/paired_difference.h"

namespace kvs::inline calibrate {
namespace {

/// A step of one layer, and the changes it makes.
struct Move {
  std::size_t layer, candidate;
  std::int64_t size;
  double loss;
};

/// Moves of different layers that are made together.
struct Trade {
  std::vector<Move> moves;
  double loss = 0;  // sum of the marginal losses
  std::int64_t size = 0;

  void add(const Move& move) {
    moves.push_back(move);
    loss += move.loss;
    size += move.size;
  }
  bool touches(std::size_t layer) const { return std::ranges::find(moves, layer, &Move::layer) != moves.end(); }
};

bool promises_more(const Trade& a, const Trade& b) { return a.loss < b.loss; }

class Allocator {
 public:
  Allocator(const LayerBudget& budget, LayerChoice start, const JointLoss& loss)
      : budget_(budget), loss_(loss), found_{std::move(start)} {
    check_start();
    found_.loss = measure(found_.choice);
  }

  LayerAllocation run() {
    for (std::size_t round = 0; round < budget_.rounds; ++round) {
      measure_moves();
      if (!accept_most(trades())) break;
    }
    exchange();
    return std::move(found_);
  }

 private:
  std::size_t size_of(std::size_t layer, std::size_t candidate) const { return budget_.layers[layer][candidate].size; }

  std::size_t size() const {
    std::size_t sum = 0;
    for (std::size_t layer = 0; layer < found_.choice.size(); ++layer) sum += size_of(layer, found_.choice[layer]);
    return sum;
  }
  std::int64_t slack() const { return static_cast<std::int64_t>(budget_.size) - static_cast<std::int64_t>(size()); }

  void check_start() const {
    if (size() <= budget_.size) return;
    std::size_t least = 0;
    for (const auto& candidates : budget_.layers)
      least += std::ranges::min_element(candidates, {}, &LayerCandidate::size)->size;
    throw Error(ErrorCode::kUsage, "budget of all layers",
                "found " + std::to_string(budget_.size) + ", expected at least the uniform split's " +
                    std::to_string(size()) + " (the smallest candidates need " + std::to_string(least) + ")");
  }

  double measure(const LayerChoice& choice) {
    ++found_.measured;
    return paired_mean(loss_(choice)).mean;
  }

  /// Measures every step of every layer on its own.
  void measure_moves() {
    moves_.clear();
    for (std::size_t layer = 0; layer < budget_.layers.size(); ++layer) {
      const std::size_t from = found_.choice[layer];
      LayerChoice choice = found_.choice;
      for (const std::size_t to : budget_.layers[layer][from].steps) {
        choice[layer] = to;
        moves_.push_back(
            {layer, to, static_cast<std::int64_t>(size_of(layer, to)) - static_cast<std::int64_t>(size_of(layer, from)),
             measure(choice) - found_.loss});
      }
    }
    std::ranges::stable_sort(
        moves_, [](const Move& a, const Move& b) {  // moves that save bytes come first, the cheapest ahead
          if ((a.size < 0) != (b.size < 0)) return a.size < 0;
          return a.size < 0 ? a.loss * static_cast<double>(-b.size) < b.loss * static_cast<double>(-a.size)
                            : a.loss < b.loss;
        });
  }

  /// Returns `move` with the moves that pay for it, without `taken` layers; nullopt if it cannot be paid.
  std::optional<Trade> paid(const Move& move, const std::vector<bool>& taken, std::int64_t slack) const {
    Trade trade;
    trade.add(move);
    for (const Move& payment : moves_) {
      if (trade.size <= slack) break;
      if (payment.size < 0 && !taken[payment.layer] && !trade.touches(payment.layer)) trade.add(payment);
    }
    return trade.size <= slack ? std::optional(std::move(trade)) : std::nullopt;
  }

  /// Returns trades that promise a gain and fit the budget in this order.
  std::vector<Trade> trades() const {
    std::vector<Trade> result;
    std::vector<bool> taken(budget_.layers.size());
    for (std::int64_t left = slack();;) {
      std::optional<Trade> best;
      for (const Move& move : moves_) {
        if (taken[move.layer] || move.loss >= 0) continue;
        auto trade = paid(move, taken, left);
        if (trade && trade->loss < 0 && (!best || promises_more(*trade, *best))) best = std::move(trade);
      }
      if (!best) break;
      for (const Move& move : best->moves) taken[move.layer] = true;
      left -= best->size;
      result.push_back(std::move(*best));
    }
    std::ranges::stable_sort(result, promises_more);
    return result;
  }

  /// Makes the trades if they fit the budget and the joint loss falls.
  bool accept(std::span<const Trade> trades) {
    LayerChoice choice = found_.choice;
    std::int64_t size = 0;
    for (const Trade& trade : trades) {
      size += trade.size;
      for (const Move& move : trade.moves) choice[move.layer] = move.candidate;
    }
    if (size > slack()) return false;
    const double loss = measure(choice);
    if (!(loss < found_.loss)) return false;
    found_.choice = std::move(choice);
    found_.loss = loss;
    for (const Trade& trade : trades)  // other moves of these layers started from another candidate
      std::erase_if(moves_, [&](const Move& move) { return trade.touches(move.layer); });
    return true;
  }

  bool accept_most(const std::vector<Trade>& trades) {
    for (std::size_t count = trades.size(); count > 0; count /= 2)
      if (accept(std::span(trades).first(count))) return true;
    return false;
  }

  /// Returns single steps, and exchanges of one layer up with another down.
  std::vector<Trade> pairs() const {
    std::vector<Trade> result;
    for (const Move& move : moves_) {
      Trade single;
      single.add(move);
      for (const Move& other : moves_) {
        if (move.size <= 0 || other.size >= 0 || other.layer == move.layer) continue;
        Trade pair = single;
        pair.add(other);
        result.push_back(std::move(pair));
      }
      result.push_back(std::move(single));
    }
    std::ranges::stable_sort(result, promises_more);
    return result;
  }

  void exchange() {
    const std::size_t last = found_.measured + budget_.exchanges;
    std::vector<bool> changed(budget_.layers.size());
    for (const Trade& trade : pairs()) {
      if (found_.measured >= last) return;
      if (std::ranges::any_of(trade.moves, [&](const Move& move) { return changed[move.layer]; })) continue;
      if (accept(std::span(&trade, 1)))
        for (const Move& move : trade.moves) changed[move.layer] = true;
    }
  }

  const LayerBudget& budget_;
  const JointLoss& loss_;
  LayerAllocation found_;
  std::vector<Move> moves_;  // measured with all other layers unchanged
};

}  // namespace

LayerAllocation allocate_layers(const LayerBudget& budget, LayerChoice start, const JointLoss& loss) {
  return Allocator(budget, std::move(start), loss).run();
}

}  // namespace kvs::inline calibrate
