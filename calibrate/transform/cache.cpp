#include "calibrate/transform/cache.h"

#include <algorithm>
#include <optional>

#include "caches/token_rows.h"
#include "calibrate/transform/coder.h"
#include "calibrate/transform/codes.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

/// Types of outliers and of waiting tokens.
KvTypes outlier_store(std::size_t head_dim) { return {{outlier_format(head_dim)}, {outlier_format(head_dim)}}; }

/// Overwrites tokens of k and v [1, head, token, head_dim] from `first` on.
void put(Backend& backend, const TokenRows::Part& part, const BackendView<float, 4>& k, const BackendView<float, 4>& v,
         std::size_t first, CodedSides sides = CodedSides::kBoth) {
  if (sides != CodedSides::kValues) put_rows(backend, part.k.view(), k, first);
  if (sides != CodedSides::kKeys) put_rows(backend, part.v.view(), v, first);
}

/// Holds tokens [start_, end()): the sinks, then coded tokens, then waiting tokens.
class TransformCache final : public LayerCache {
 public:
  TransformCache(std::shared_ptr<const TransformProducts> products, CodedSides sides)
      : products_(std::move(products)),
        sides_(sides),
        codes_(make_transform_codes(products_)),
        outliers_(outlier_store(products_->shape.head_dim)),
        waiting_(outlier_store(products_->shape.head_dim)) {}

  void attend(LayerStates& states, const Operand& out) override {
    if (states.members() > 1) throw Error(ErrorCode::kInternal, "cache", "coded rows of several members");
    window_ = states.window;
    chunk_ = states.chunk;
    peak_ = {};
    if (reads_codes(states))
      attend_codes(states, out);
    else
      attend_states(states, out);
  }

  CacheBytes bytes() const noexcept override {
    CacheBytes bytes = codes_->bytes();
    for (const TokenRows* const rows : {&sinks_, &outliers_, &waiting_}) bytes += rows->bytes();
    const std::size_t places = outliers_.count() * sizeof(std::uint32_t);
    return bytes += {.stored = places, .used = places};
  }
  CacheBytes peak() const noexcept override { return peak_; }
  std::size_t positions(std::size_t tokens) const noexcept override {
    const std::size_t sinks = codes_->attends() ? std::min(products_->sinks, tokens) : 0;  // late_rows()
    return tokens + std::max<std::size_t>(1, sinks) - 1;
  }

 private:
  /// Tokens [first, first + count) of a group.
  struct TokenGroup {
    TokenGroup(const LayerStates& all, std::size_t first, std::size_t count) : states(all) {
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
    const std::size_t tokens = states.tokens(), recent = products_->recent, base = start_;
    TokenRows past = read(states);
    for (std::size_t at = 0, count = 0; at < tokens; at += count) {
      count = recent == 0 ? tokens : std::min(tokens - at, missing_sinks() + 2 * recent - waiting_.count());
      const TokenGroup group(states, at, count);
      keep(group.states);
      rotate_at(group.states, group.states.first_position);
      attend_rows(group.states, past.held(), operand_rows(backend, out, at, count));
      const bool last = at + count == tokens;
      if (!last) past.append(backend, group.states.k, group.states.v, 0, count);
      const std::size_t position = waiting_from();
      const auto older = settle(backend);
      if (last || !older) continue;
      backend.rope(older->k.view(), states.rope, position, RopeDirection::kForward, {});
      past.put(backend, position - base, *older);
    }
  }

  /// Returns true if the codes are read directly: by a single token that reads all of them, with weights that sum to 1.
  bool reads_codes(const LayerStates& states) const noexcept {
    if (!states.sinks.empty()) return false;
    return codes_->attends() && codes_->count() > 0 && states.tokens() == 1 && window_ + chunk_ == 0 &&
           products_->recent > 0;
  }

  void attend_codes(LayerStates& states, const Operand& out) {
    const TokenRows::Part late = late_rows(states);
    keep(states);
    rotate_at(states, states.first_position);
    codes_->attend(states, coded_from(), late, out);
    (void)settle(states.backend);
  }

  /// Returns the waiting tokens, then the sinks, with keys that rotate as if all of them came after the coded tokens.
  TokenRows::Part late_rows(const LayerStates& states) const {
    Backend& backend = states.backend;
    TokenRows::Part late = empty_part(backend, products_->shape, waiting_.count() + sinks_.count());
    if (waiting_.count() > 0)
      put(backend, waiting_.copy(backend, 0, waiting_.count()), late.k.view(), late.v.view(), 0);
    if (sinks_.count() > 0) {
      const TokenRows::Part sinks = sinks_.copy(backend, 0, sinks_.count());
      backend.rope(sinks.k.view(), states.rope, start_, RopeDirection::kForward, {});
      backend.rope(sinks.k.view(), states.rope, end(), RopeDirection::kInverse, {});
      put(backend, sinks, late.k.view(), late.v.view(), waiting_.count());
    }
    return late;
  }

  /// Called after some tokens: drops old tokens, and codes the older half of the waiting tokens once there are enough.
  /// @return the decoded states of these
  std::optional<TokenRows::Part> settle(Backend& backend) {
    drop_old(backend);
    if (bytes().stored > peak_.stored) peak_ = bytes();
    if (products_->recent == 0 || waiting_.count() < 2 * products_->recent) return std::nullopt;
    TokenRows::Part older = waiting_.copy(backend, 0, products_->recent);
    code(backend, older.k.view(), older.v.view(), 0);
    waiting_.drop_front(backend, products_->recent);
    return older;
  }

  std::size_t coded_from() const noexcept { return start_ + sinks_.count(); }
  std::size_t waiting_from() const noexcept { return coded_from() + codes_->count(); }
  std::size_t end() const noexcept { return waiting_from() + waiting_.count(); }
  std::size_t missing_sinks() const noexcept { return products_->sinks - std::min(products_->sinks, end()); }

  /// Keeps the new tokens and writes their decoded states to `states`.
  void keep(const LayerStates& states) {
    Backend& backend = states.backend;
    const std::size_t tokens = states.tokens(), sinks = std::min(tokens, missing_sinks()), count = tokens - sinks;
    if (sinks > 0) sinks_.append(backend, states.k, states.v, 0, sinks);
    if (count == 0) return;
    if (products_->recent == 0) return code(backend, states.k, states.v, sinks);
    waiting_.append(backend, states.k, states.v, sinks, count);
    put(backend, waiting_.copy(backend, waiting_.count() - count, count), states.k, states.v, sinks);
  }

  /// Codes tokens of k and v from `first` on and overwrites them with their decoded states.
  void code(Backend& backend, const BackendView<float, 4>& k, const BackendView<float, 4>& v, std::size_t first) {
    const std::size_t position = waiting_from(), before = places_.size();
    const TransformCodes::Coded coded = codes_->append(backend, k, v, first);
    for (std::size_t token = 0; token < coded.costs.size(); ++token)
      if (coded.costs[token] > threshold(position + token)) {
        outliers_.append(backend, k, v, first + token, 1);
        places_.push_back(static_cast<std::uint32_t>(position + token));
      }
    put(backend, coded.states, k, v, first, sides_);
    for (std::size_t n = before; n < places_.size(); ++n)
      put(backend, outliers_.copy(backend, n - gone_, 1), k, v, first + places_[n] - position);
  }

  /// Returns the threshold for the token at `position`, when the tokens before it are coded.
  double threshold(std::size_t position) const {
    const std::size_t held = window_ == 0 ? 0 : window_ + 1;  // the last call's window, and this token
    const std::size_t oldest = std::max(products_->sinks, oldest_read(position, held, chunk_));
    const auto first = std::ranges::lower_bound(places_, static_cast<std::uint32_t>(oldest));
    return outlier_threshold(*products_, position - oldest, static_cast<std::size_t>(places_.end() - first));
  }

  /// Returns everything that is stored, rotated.
  TokenRows read(const LayerStates& states) const {
    Backend& backend = states.backend;
    TokenRows past;
    const std::size_t tokens = end() - start_;
    if (tokens == 0) return past;
    const TokenRows::Part part = empty_part(backend, products_->shape, tokens);
    const auto put_at = [&](const TokenRows::Part& some, std::size_t position) {
      put(backend, some, part.k.view(), part.v.view(), position - start_);
    };
    if (sinks_.count() > 0) put_at(sinks_.copy(backend, 0, sinks_.count()), start_);
    if (codes_->count() > 0) put_at(codes_->copy(backend), coded_from());
    if (waiting_.count() > 0) put_at(waiting_.copy(backend, 0, waiting_.count()), waiting_from());
    for (std::size_t n = gone_; n < places_.size(); ++n) put_at(outliers_.copy(backend, n - gone_, 1), places_[n]);
    backend.rope(part.k.view(), states.rope, start_, RopeDirection::kForward, {});
    past.append(backend, part.k.view(), part.v.view(), 0, tokens);
    return past;
  }

  /// Drops tokens that no later token reads. Waiting tokens are not dropped.
  void drop_old(Backend& backend) {
    const std::size_t oldest = end() == 0 ? 0 : oldest_read(end() - 1, window_, chunk_);
    if (oldest <= start_) return;
    const std::size_t old = oldest - start_, sinks = std::min(old, sinks_.count()),
                      coded = std::min(old - sinks, codes_->count());
    if (sinks > 0) sinks_.drop_front(backend, sinks);
    if (coded > 0) codes_->drop_front(backend, coded);
    start_ += sinks + coded;
    std::size_t gone = gone_;
    while (gone < places_.size() && places_[gone] < start_) ++gone;
    if (gone > gone_) outliers_.drop_front(backend, gone - gone_);
    gone_ = gone;
  }

  std::shared_ptr<const TransformProducts> products_;
  CodedSides sides_;
  std::size_t start_ = 0, window_ = 0, chunk_ = 0;
  TokenRows sinks_;
  std::unique_ptr<TransformCodes> codes_;
  TokenRows outliers_, waiting_;       // keys before RoPE, like those of the sinks
  std::vector<std::uint32_t> places_;  // positions of all outliers, ascending
  std::size_t gone_ = 0;               // number of first ones that are no longer stored
  CacheBytes peak_;
};

}  // namespace

std::unique_ptr<LayerCache> make_transform_cache(std::shared_ptr<const TransformProducts> products, CodedSides sides) {
  return std::make_unique<TransformCache>(std::move(products), sides);
}

}  // namespace kvs::inline calibrate
