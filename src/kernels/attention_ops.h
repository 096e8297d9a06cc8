// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "kernels/forward_ops.h"
#include "kernels/row_format.h"

namespace kvs::inline kernels {

/// Rows as stored by a cache: the first `count` rows of each head, in memory with capacity for more.
struct StoredRows {
  StoredRows() = default;
  /// Makes rows in f32: [member or 1, head, capacity, value].
  StoredRows(const BackendView<const float, 4>& rows, std::size_t used)
      : data(rows.data()), shape(rows.shape()), count(used) {}

  bool empty() const noexcept { return count == 0; }
  std::size_t values() const noexcept { return shape[3]; }
  std::size_t bytes(std::size_t rows) const noexcept { return rows_bytes(format, values(), rows); }
  /// Returns the first byte of a head's row. For rows stored as one unit, returns the unit's first byte.
  const std::byte* row(std::size_t member, std::size_t head, std::size_t first) const noexcept {
    const std::size_t all = (shape[0] == 1 ? 0 : member) * shape[1] + head;
    return static_cast<const std::byte*>(data) + all * bytes(shape[2]) + bytes(first);
  }

  const void* data = nullptr;
  std::array<std::size_t, 4> shape{};  // [member or 1, head, capacity, value]
  std::size_t count = 0;
  RowFormat format = {};
  /// RowFormat::is_scaled(): [head], or empty for 1. kTrellis: the books, then [head, value] of TrellisValue.
  BackendView<const float, 1> scales = {};
};

/// Tokens of one call that come in steps, `first` tokens and then `step` in each. Their rows have a second, settled
/// form: a token reads in this form all tokens but those of its own step and of `step` tokens before it.
struct Settling {
  std::size_t first = 0, step = 0;  // step 0: rows do not settle

  /// Returns the number of tokens that a token reads in settled form.
  constexpr std::size_t before(std::size_t token) const noexcept {
    return token < first ? 0 : first - step + (token - first) / step * step;
  }
};

/// Keys and values of earlier tokens, each in up to two parts. Keys and values may be divided at different tokens.
struct PastKv {
  PastKv() = default;
  PastKv(const StoredRows& keys, const StoredRows& values) : k(keys), v(values) {}
  /// Takes the early and the later rows of keys and of values. Either part may be empty.
  PastKv(const StoredRows& early_k, const StoredRows& early_v, const StoredRows& other_k, const StoredRows& other_v)
      : PastKv(early_k.empty() ? other_k : early_k, early_v.empty() ? other_v : early_v) {
    if (!early_k.empty()) late_k = other_k;
    if (!early_v.empty()) late_v = other_v;
  }
  /// Takes the first `count` f32 rows of each.
  PastKv(const BackendView<const float, 4>& keys, const BackendView<const float, 4>& values, std::size_t count)
      : k(keys, count), v(values, count) {}

  std::size_t count() const noexcept { return k.count + late_k.count; }
  /// Returns the number of tokens before the call's own.
  std::size_t tokens_before() const noexcept { return settling.step > 0 ? 0 : count(); }
  /// Returns true if keys and values are stored as f32 rows.
  bool is_plain() const noexcept {
    return k.format.is_plain() && v.format.is_plain() && late_k.empty() && late_v.empty() && slots.cosine.empty();
  }

  StoredRows k, v;            // [member or 1, kv_head, capacity, head_dim]
  StoredRows late_k, late_v;  // the tokens after those of k and v
  RopeTable slots = {};       // row n of k is rotated to position n when it is read; empty: keys are already rotated
  Settling settling = {};     // above step 0, these are no earlier tokens: row n is the call's token n, settled
};

/// Returns the first position that the token at `position` reads.
/// @param window  the last positions that it reads, including its own; 0: all
/// @param chunk   it reads those of its own chunk of so many positions; 0: all
constexpr std::size_t oldest_read(std::size_t position, std::size_t window, std::size_t chunk) noexcept {
  if (chunk > 0) return position / chunk * chunk;
  return window > 0 && position + 1 > window ? position + 1 - window : 0;
}

/// oldest_read() in rows: row 0 is at position `first`.
constexpr std::size_t oldest_row(std::size_t row, std::size_t window, std::size_t chunk, std::size_t first) noexcept {
  const std::size_t oldest = oldest_read(first + row, window, chunk);
  return oldest > first ? oldest - first : 0;
}

/// The queries of a batch, with the keys and values that they read.
struct AttentionInput {
  BackendView<const float, 4> q;     // [member, query_head, token, head_dim], rotated
  BackendView<const float, 4> k, v;  // [member, kv_head, token, head_dim] of the same tokens
  PastKv past = {};                  // keys and values of the tokens before
  float scale = 1;                   // multiplies q·k before the softmax, usually 1 / sqrt(head_dim)
  std::size_t window = 0;            // a token reads only the last `window` positions, including its own; 0: all
  std::size_t chunk = 0;             // instead of a window: a token reads its own chunk of positions (oldest_read())
  std::size_t first_position = 0;    // of the oldest row, in a layer with chunks
  float softcap = 0;                 // above 0: scaled scores s become softcap · tanh(s / softcap)
  /// If not empty, attention writes the attention mass of each key: its softmax weights summed over the query heads
  /// that read it. For a single token of one member.
  BackendView<float, 2> mass = {};  // [kv_head, past + 1]
  /// A logit of each query head that joins its softmax without a value, so that weights sum to less than 1; or empty.
  BackendView<const float, 1> sinks = {};  // [query_head]; CPU only
};

/// Maximum number of query rows of a KV head, (H / G) · tokens, for attention with a mass or over a spectrum.
constexpr std::size_t kMaxQueryRows = 256;

/// @throws Error kInternal unless the shapes of attention()'s operands match.
void check_attention(const AttentionInput& input, const Operand& out);

/// Queries, keys and values as the output of one product. The tokens attend only to themselves.
struct SelfAttentionInput {
  BackendView<const float, 2> qkv;  // [member · token, (H + 2G) · head_dim], the input of split_heads()
  std::size_t members = 1, query_heads = 0, kv_heads = 0;
  RopeTable rope;
  std::size_t first_position = 0;  // position of token 0
  float scale = 1;                 // scale, window, chunk, softcap, sinks as in AttentionInput
  std::size_t window = 0;
  std::size_t chunk = 0;
  float softcap = 0;
  BackendView<const float, 1> sinks = {};

  std::size_t tokens() const noexcept { return qkv.extent(0) / members; }
  std::size_t head_dim() const noexcept { return qkv.extent(1) / (query_heads + 2 * kv_heads); }
};

/// Attention over stored rows, and the coding of rows.
class AttentionOps {
 public:
  virtual ~AttentionOps() = default;

  /// Causal attention. Token t of a member reads the past and its own tokens 0 … t, limited to its window or chunk.
  /// Memory for scores is bounded by a tile, not by tokens². Query head h reads KV head h / (H / G). out: [member ·
  /// token, H · head_dim].
  virtual void attention(const AttentionInput& input, Operand out) = 0;
  /// Equals split_heads(), rope() of q and k, and attention(), bit for bit, for states that are not needed elsewhere.
  /// Each backend stores the states in its own layout for attention.
  virtual void self_attention(const SelfAttentionInput& input, Operand out) = 0;
  /// Encodes rows [first, first + count) of `rows` [1, head, token, value] into rows [at, at + count) of `held`, whose
  /// memory is written. Rows stored in units must be given as whole units.
  virtual void encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count,
                           const StoredRows& held, std::size_t at) = 0;
  /// Decodes rows [first, first + out.extent(2)) of `held` to `out`. out: [1, head, token, value].
  virtual void decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out) = 0;
  /// Returns true if attention() accepts PastKv::settling, of one member without a window or chunks.
  virtual bool attends_settling() const { return false; }
  /// Returns the largest head_dim that attention() accepts.
  virtual std::size_t max_head_dim() const { return SIZE_MAX; }
};

}  // namespace kvs::inline kernels
