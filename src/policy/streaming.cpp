#include "policy/streaming.h"

#include <algorithm>

#include "policy/token_rows.h"
#include "policy/token_steps.h"

namespace kvs {
namespace {

/// Rows: the sinks, then a ring of recent tokens, whose order attention does not see. Rotations are those of positions
/// counted from `origin_`, which follows the text so that they stay below 2 · cache_size.
class StreamingCache final : public LayerCache {
 public:
  explicit StreamingCache(const StreamingOptions& options) : options_(options) {}

  void attend(LayerStates& states, const Operand& out) override {
    if (seen_ + states.tokens() <= options_.cache_size) return attend_together(states, out);
    for_each_token(states, out, [&](LayerStates& token, const Operand& row) {
      if (seen_ >= options_.cache_size) {
        if (seen_ - origin_ + 1 == 2 * options_.cache_size) move_origin(token);
        turn_sinks(token);
      }
      attend_together(token, row);
    });
  }

  std::size_t positions(std::size_t tokens) const noexcept override {
    return std::min(tokens, 2 * options_.cache_size);
  }

  /// A token that attends stands in a slot of its own, beside those that are kept for the next.
  CacheBytes peak() const noexcept override {
    CacheBytes bytes = this->bytes();
    if (seen_ >= options_.cache_size) bytes.stored = bytes.stored / rows_.count() * options_.cache_size;
    return bytes;
  }

  CacheBytes bytes() const noexcept override {
    CacheBytes bytes = rows_.bytes();
    const CacheBytes turned_anew = sinks_.bytes();  // working memory: the sinks are rows already
    bytes.used += turned_anew.used;
    bytes.spare += turned_anew.spare;
    return bytes;
  }

 private:
  std::size_t recent() const noexcept { return options_.cache_size - options_.sinks - 1; }  // beside the new token

  /// Of tokens that all read the same rows.
  void attend_together(LayerStates& states, const Operand& out) {
    const bool kept = states.members() == 1;
    if (kept && seen_ < options_.sinks)
      sinks_.append(states.backend, states.k, 0, std::min(states.tokens(), options_.sinks - seen_));
    rotate_at(states, seen_ - origin_);
    attend_rows(states, rows_.held(), out);
    if (kept) keep(states.backend, states);
  }

  void keep(Backend& backend, const LayerStates& states) {
    const std::size_t tokens = states.tokens(), capacity = options_.sinks + recent();
    for (std::size_t token = 0; token < tokens; ++token) {
      if (rows_.count() < capacity) {
        const std::size_t run = std::min(tokens - token, capacity - rows_.count());
        rows_.append(backend, states.k, states.v, token, run);
        token += run - 1;
      } else if (recent() > 0) {
        rows_.put(backend, options_.sinks + next_, states.k, states.v, token, 1);
        next_ = (next_ + 1) % recent();
      }
    }
    seen_ += tokens;
  }

  /// The new token stands in slot cache_size − 1, its rotation is that of seen_ − origin_.
  void turn_sinks(const LayerStates& states) {
    if (options_.sinks == 0) return;
    const RowBuffer::Part sinks = sinks_.copy(states.backend, 0, options_.sinks);
    const std::size_t first = seen_ - origin_ + 1 - options_.cache_size;
    states.backend.rope(sinks.view(), states.rope, first, RopeDirection::kForward, {});
    rows_.put_keys(states.backend, 0, sinks);
  }

  /// Turns the recent keys back by cache_size positions: by the same angle, whatever their position is.
  void move_origin(const LayerStates& states) {
    TokenRows::Part ring = rows_.copy(states.backend, options_.sinks, recent());
    const auto [members, heads, count, head_dim] = ring.k.view().shape();
    states.backend.rope(ring.k.view().reshape<4>({members, heads * count, 1, head_dim}), states.rope,
                        options_.cache_size, RopeDirection::kUnrotate, {});
    rows_.put(states.backend, options_.sinks, ring);
    origin_ += options_.cache_size;
  }

  StreamingOptions options_;
  TokenRows rows_;
  RowBuffer sinks_;  // keys before RoPE
  std::size_t seen_ = 0, origin_ = 0;
  std::size_t next_ = 0;  // of the ring
};

std::unique_ptr<LayerCache> make_streaming(Parameters& parameters, std::size_t, const StateStore&) {
  StreamingOptions options;
  options.sinks = parameters.count("sinks", options.sinks, 0);
  const std::size_t least = options.sinks == 0 ? 2 : 1;  // the new token's slot and another
  options.cache_size = parameters.count("cache_size", Parameters::kRequired, least, options.sinks);
  return make_streaming_cache(options);
}

}  // namespace

std::unique_ptr<LayerCache> make_streaming_cache(const StreamingOptions& options) {
  return std::make_unique<StreamingCache>(options);
}

constinit const CacheMethod kStreamingMethod{"streaming", Prefill::kStepwise, make_streaming};

}  // namespace kvs
