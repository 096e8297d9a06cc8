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
    Backend& backend = states.backend;
    const std::size_t tokens = states.tokens(), base = group_->start(), first = tokens_at_once(states);
    TokenRows past = first > 0 ? attend_at_once(states, first, out) : group_->read(states, layer_);
    for (std::size_t at = first, count = 0; at < tokens; at += count) {
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

  /// Returns the number of tokens of a text's first call that attend_at_once() takes: those before the last step of
  /// coding, whose bytes are the call's peak. (Not so in the storage form, where rows wait for a whole block.)
  std::size_t tokens_at_once(const LayerStates& states) const noexcept {
    const TransformProducts& products = group_->products();
    const std::size_t sinks = products.sinks, recent = products.recent;
    const bool is_new = group_->layers() == 1 && group_->end(layer_) == 0 && states.window + states.chunk == 0;
    if (!is_new || products.entropy != nullptr || recent == 0 || states.tokens() < sinks + 4 * recent) return 0;
    return sinks + ((states.tokens() - sinks) / recent - 1) * recent;
  }

  /// Number of tokens that wait at once in attend_at_once().
  static constexpr std::size_t kCodedAtOnce = 256;

  /// Codes tokens [0, count) of a text before they attend: what a token reads does not depend on the tokens after it.
  /// The states that each token reads have the bits of attend_states(). @return everything, as attend_states() restores
  TokenRows attend_at_once(LayerStates& states, std::size_t count, const Operand& out) {
    Backend& backend = states.backend;
    const std::size_t sinks = group_->products().sinks, recent = group_->products().recent;
    const CallTokens all(states, 0, count);
    std::vector<TokenRows::Part> older;
    std::size_t coded = 0;
    for (std::size_t first = 0, some = 0; first < count; first += some) {
      some = std::min(kCodedAtOnce, count - first);
      const CallTokens part(all.states, first, some);
      group_->keep(part.states, layer_);
      if (some < count) {
        put_rows(backend, part.states.k, all.states.k, first);
        put_rows(backend, part.states.v, all.states.v, first);
      }
      const std::size_t fresh = first + some - std::min(first + some, sinks + coded + recent);
      if (fresh == 0) continue;
      older.push_back(*group_->code_waiting(backend, fresh));
      backend.rope(older.back().k.view(), states.rope, sinks + coded, RopeDirection::kForward, {});
      coded += fresh;
    }
    rotate_at(all.states, all.states.first_position);
    TokenRows past;
    if (sinks > 0) past.append(backend, all.states.k, all.states.v, 0, sinks);
    for (const TokenRows::Part& part : older)
      past.append(backend, part.k.view(), part.v.view(), 0, part.k.view().extent(2));
    attend_settling(all.states, past.held(), out);
    past.append(backend, all.states.k, all.states.v, count - recent, recent);
    return past;
  }

  /// Attention of a text's first tokens, which wait for two steps of coding. @param settled  sinks and decoded tokens
  void attend_settling(const LayerStates& states, PastKv settled, const Operand& out) const {
    Backend& backend = states.backend;
    const std::size_t count = states.tokens(), sinks = group_->products().sinks, recent = group_->products().recent;
    if (backend.attends_settling()) {
      settled.settling = {.first = sinks + 2 * recent, .step = recent};
      return attend_rows(states, settled, operand_rows(backend, out, 0, count));
    }
    const StoredRows k(states.k, count), v(states.v, count);
    for (std::size_t at = 0, step = sinks + 2 * recent; at < count; at += step, step = recent) {
      const CallTokens some(states, at, step);
      PastKv read;
      if (at > 0)  // the last tokens have not been coded yet
        read = {stored_range(settled.k, 0, at - recent), stored_range(settled.v, 0, at - recent),
                stored_range(k, at - recent, recent), stored_range(v, at - recent, recent)};
      attend_rows(some.states, read, operand_rows(backend, out, at, step));
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
