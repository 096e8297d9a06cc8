// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/cache.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "caches/stored_range.h"
#include "calibrate/transform/coded_group.h"
#include "calibrate/transform/coder.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

/// The cache of one layer of a group.
class TransformCache final : public LayerCache {
 public:
  TransformCache(std::shared_ptr<CodedGroup> group, std::size_t layer) : group_(std::move(group)), layer_(layer) {}

  std::size_t max_tokens_per_call() const noexcept override {
    return group_->layers() == 1 ? kUnlimited : group_->room(layer_);
  }
  void attend(LayerStates& states, const Operand& out) override {
    if (states.members() > 1) throw Error(ErrorCode::kInternal, "cache", "coded rows of several members");
    if (states.tokens() > max_tokens_per_call())
      throw Error(ErrorCode::kInternal, "cache", "more tokens than layers that are coded together take");
    group_->begin(layer_, states);
    if (reads_codes(states))
      attend_codes(states, out);
    else
      attend_states(states, out);
  }

  CacheBytes bytes() const noexcept override { return group_->bytes(layer_); }
  CacheBytes peak() const noexcept override { return group_->peak(layer_); }
  std::size_t positions(std::size_t tokens) const noexcept override {
    // CodedGroup::late_rows()
    const std::size_t sinks = group_->codes().attends() ? std::min(group_->products().sinks, tokens) : 0;
    return tokens + std::max<std::size_t>(1, sinks) - 1;
  }

 private:
  /// Tokens [first, first + count) of a call.
  struct CallTokens {
    CallTokens(const LayerStates& all, std::size_t first, std::size_t count) : states(all) {
      if (count == all.tokens()) return;
      states.first_position += first;
      states.x = operand_rows(all.backend, all.x, first, count);
      states.q = (q = RowBuffer::part_of(all.backend, all.q, first, count)).view();
      states.k = (k = RowBuffer::part_of(all.backend, all.k, first, count)).view();
      states.v = (v = RowBuffer::part_of(all.backend, all.v, first, count)).view();
    }

    LayerStates states;
    RowBuffer::Part q, k, v;
  };

  /// Restores everything, rotated, for each group of tokens that must be processed separately, and then attends.
  void attend_states(LayerStates& states, const Operand& out) {
    if (attends_at_once(states)) return attend_at_once(states, out);
    Backend& backend = states.backend;
    const std::size_t tokens = states.tokens(), base = group_->start();
    TokenRows past = group_->read(states, layer_);
    for (std::size_t at = 0, count = 0; at < tokens; at += count) {
      count = group_->products().recent == 0 ? tokens : std::min(tokens - at, group_->room(layer_));
      const CallTokens some(states, at, count);
      group_->keep(some.states, layer_);
      rotate_at(some.states, some.states.first_position);
      attend_rows(some.states, past.held(), operand_rows(backend, out, at, count));
      const bool last = at + count == tokens;
      if (!last) past.append(backend, some.states.k, some.states.v, 0, count);
      const std::size_t position = group_->waiting_from(layer_);
      const auto older = settle(backend);
      if (last || !older) continue;
      backend.rope(older->k.view(), states.rope, position, RopeDirection::kForward, {});
      past.put(backend, position - base, *older);
    }
  }

  /// Returns true for a text's first call if it is long enough. (Not in the storage form: rows wait for a whole block.)
  bool attends_at_once(const LayerStates& states) const noexcept {
    const TransformProducts& products = group_->products();
    const bool is_new = group_->layers() == 1 && group_->end(layer_) == 0 && states.window + states.chunk == 0;
    return is_new && products.entropy == nullptr && products.recent > 0 &&
           states.tokens() >= products.sinks + 4 * products.recent;
  }

  /// Number of tokens that wait at once in attend_at_once().
  static constexpr std::size_t kCodedAtOnce = 256;

  /// Codes a text before it attends: what a token reads does not depend on the tokens after it. The states that each
  /// token reads have the bits of attend_states().
  void attend_at_once(LayerStates& states, const Operand& out) {
    Backend& backend = states.backend;
    const std::size_t tokens = states.tokens(), sinks = group_->products().sinks, recent = group_->products().recent;
    // From here on in steps, as the bytes of the last one are the call's peak.
    const std::size_t steps_from = sinks + ((tokens - sinks) / recent - 1) * recent;
    std::vector<TokenRows::Part> settled;
    std::size_t coded = 0;
    for (std::size_t first = 0, some = 0; first < tokens; first += some) {
      const bool in_steps = first >= steps_from;
      some = in_steps ? std::min(tokens - first, group_->room(layer_)) : std::min(kCodedAtOnce, steps_from - first);
      const CallTokens part(states, first, some);
      group_->keep(part.states, layer_);
      put_rows(backend, part.states.k, states.k, first);
      put_rows(backend, part.states.v, states.v, first);
      std::optional<TokenRows::Part> older;
      if (in_steps)
        older = settle(backend);
      else if (const std::size_t end = first + some, kept = sinks + coded + recent; end > kept)
        older = group_->code_waiting(backend, end - kept);
      if (!older) continue;
      backend.rope(older->k.view(), states.rope, sinks + coded, RopeDirection::kForward, {});
      coded += older->k.view().extent(2);
      settled.push_back(*std::move(older));
    }
    rotate_at(states, states.first_position);
    TokenRows past;
    if (sinks > 0) past.append(backend, states.k, states.v, 0, sinks);
    for (const TokenRows::Part& part : settled)
      past.append(backend, part.k.view(), part.v.view(), 0, part.k.view().extent(2));
    attend_settling(states, past.held(), out);
  }

  /// Attention of a whole text, whose tokens wait for a step before they are coded.
  /// @param settled  the sinks and the decoded tokens
  void attend_settling(const LayerStates& states, PastKv settled, const Operand& out) const {
    Backend& backend = states.backend;
    const std::size_t tokens = states.tokens(), recent = group_->products().recent;
    settled.settling = {.first = group_->products().sinks + 2 * recent, .step = recent};
    if (backend.attends_settling()) return attend_rows(states, settled, out);
    const StoredRows k(states.k, tokens), v(states.v, tokens);
    for (std::size_t at = 0, count = settled.settling.first; at < tokens; at += count, count = recent) {
      count = std::min(count, tokens - at);
      const CallTokens some(states, at, count);
      const std::size_t read = settled.settling.before(at);
      PastKv past;
      if (at > 0)
        past = {stored_range(settled.k, 0, read), stored_range(settled.v, 0, read), stored_range(k, read, recent),
                stored_range(v, read, recent)};
      attend_rows(some.states, past, operand_rows(backend, out, at, count));
    }
  }

  /// Returns true if the codes are read directly: by a single token that reads all of them, with weights that sum to 1.
  bool reads_codes(const LayerStates& states) const noexcept {
    if (!states.sinks.empty()) return false;
    const TransformCodes& codes = group_->codes();
    return codes.attends() && codes.count() > 0 && states.tokens() == 1 && states.window + states.chunk == 0 &&
           group_->products().recent > 0;
  }

  void attend_codes(LayerStates& states, const Operand& out) {
    const TokenRows::Part late = group_->late_rows(states, layer_);
    group_->keep(states, layer_);
    rotate_at(states, states.first_position);
    group_->codes().attend(states, group_->coded_from(layer_), late, out);
    (void)settle(states.backend);
  }

  /// The last layer of a group settles for all of them.
  std::optional<TokenRows::Part> settle(Backend& backend) {
    if (layer_ + 1 < group_->layers()) return std::nullopt;
    return group_->settle(backend);
  }

  std::shared_ptr<CodedGroup> group_;
  std::size_t layer_;
};

}  // namespace

std::unique_ptr<LayerCache> make_transform_cache(std::shared_ptr<const TransformProducts> products, CodedSides sides,
                                                 std::shared_ptr<TokenInputs> inputs) {
  return std::make_unique<TransformCache>(std::make_shared<CodedGroup>(std::move(products), sides, std::move(inputs)),
                                          0);
}

std::vector<std::unique_ptr<LayerCache>> make_group_caches(std::shared_ptr<const TransformProducts> products,
                                                           std::shared_ptr<TokenInputs> inputs) {
  const auto group = std::make_shared<CodedGroup>(std::move(products), CodedSides::kBoth, std::move(inputs));
  std::vector<std::unique_ptr<LayerCache>> caches;
  for (std::size_t layer = 0; layer < group->layers(); ++layer)
    caches.push_back(std::make_unique<TransformCache>(group, layer));
  return caches;
}

}  // namespace kvs::inline calibrate
