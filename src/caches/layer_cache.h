// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "caches/kv_types.h"
#include "caches/recurrent_state.h"
#include "kernels/backend.h"

namespace kvs::inline caches {

/// The RMS norms that follow RoPE, over each head's channels.
struct RotatedNorm {
  BackendView<const float, 1> query_gain = {}, key_gain = {};  // [head_dim], or empty: none
  float epsilon = 0;
};

/// The states of one layer's new tokens after the projections (with biases and QK-norm). The views are mutable: the
/// layer continues with the written values.
struct LayerStates {
  Backend& backend;
  std::size_t layer;
  std::size_t first_position;  // of token 0 in its document
  RopeTable rope;              // of this layer, for at least the positions of these tokens
  Operand x;  // [member · token, d_model] input of q_proj, k_proj, v_proj, after the layer's norm; read only
  BackendView<float, 4> q;     // [member, query_head, token, head_dim]
  BackendView<float, 4> k, v;  // [member, kv_head, token, head_dim]
  float scale = 1;             // these five as in AttentionInput
  std::size_t window = 0;
  std::size_t chunk = 0;
  float softcap = 0;
  BackendView<const float, 1> sinks = {};
  std::span<const float> query_factors = {};  // [token] that q was multiplied by, or empty
  RotatedNorm norm = {};                      // of a model that normalises rotated queries and keys
  RotatedNorm turned_norm = {};               // used by turn_later()
  /// The positions that each token reads, ascending, then −1: [member · token, most]; empty: all. Latent attention.
  std::span<const std::int32_t> chosen = {};
  bool reads_output = true;  // false: nothing reads the attention of these tokens, only what the cache keeps of them

  std::size_t members() const noexcept { return q.extent(0); }
  std::size_t tokens() const noexcept { return q.extent(2); }
};

/// Rotates q and k as tokens at positions `first`, `first` + 1, …, and normalises them if the model does so after RoPE.
void rotate_at(const LayerStates& states, std::size_t first);
/// For caches that rotate keys after storing them, or undo the rotation. In a model with norms after RoPE,
/// normalises the keys now, without their gain, which multiplies the queries instead. RMS norms commute with rotations,
/// so the scores are the same.
void turn_later(LayerStates& states);
/// Writes to `out` the attention of the states' queries over `past` and over their own keys and values, all rotated. In
/// a layer with chunks, `past` holds the tokens right before them. Does nothing if nothing reads `out` or `mass`.
/// @param mass  empty, or written: AttentionInput::mass
void attend_rows(const LayerStates& states, const PastKv& past, const Operand& out, BackendView<float, 2> mass = {});
/// attend_rows() for a single token. @return the attention mass of each key, past and own: [kv_head, past + 1]
std::vector<float> attend_rows_with_mass(const LayerStates& states, const PastKv& past, const Operand& out);

/// Memory of a cache.
struct CacheBytes {
  static constexpr std::size_t kStoredValue = 2;  // bytes of a value that is not coded

  std::size_t stored = 0;  // bytes in an engine: codes and scales as they are, every other value as kStoredValue
  std::size_t used = 0;    // bytes of this run's buffers
  std::size_t spare = 0;   // allocated in addition, for future tokens

  CacheBytes& operator+=(const CacheBytes& other) noexcept;
};

/// The arithmetic of tokens that attend to every token before them. Different kinds give different bits.
enum class StartKind {
  kFull,      ///< as in a full cache
  kByToken,   ///< token by token, with attention mass
  kSlots,     ///< as one group, over coded rows that are rotated when they are read
  kStreaming  ///< the sinks as one group, then the others as one, over sinks and recent rows
};

/// The first `tokens` tokens of a document attend to all tokens before them that the layer lets them read, at their
/// positions, from rows of these types. On the CPU, what they read is bit for bit the same in all caches that begin
/// alike. They do not read LayerStates::x.
struct FullStart {
  std::size_t tokens = 0;
  KvTypes types = {};
  StartKind kind = StartKind::kFull;
  std::size_t sinks = 0;  // of kStreaming

  bool begins_like(const FullStart& other) const {
    return kind == other.kind && sinks == other.sinks && types == other.types;
  }
};

/// A method's cache of one layer for one sequence. It decides how queries and keys are rotated, what it keeps of every
/// token, and what attention reads.
class LayerCache {
 public:
  static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

  virtual ~LayerCache() = default;

  /// Returns the number of tokens that may come as one group before the method has to act between two tokens: at least
  /// 1. Every split of a text into such groups gives the same cache and, up to rounding, the same results.
  virtual std::size_t max_tokens_per_call() const noexcept { return kUnlimited; }
  /// Writes to `out` the attention of the new tokens over the kept rows and over themselves, then keeps of the new
  /// tokens what the method keeps. A batch of several members shares the kept rows and does not change them.
  /// @param states  before RoPE; q, k and v are scratch afterwards;  @param out  [member · token, H · head_dim]
  virtual void attend(LayerStates& states, const Operand& out) = 0;
  /// Tokens between these two calls are a prefix that attends to all of itself. It is compressed once, at its end.
  /// Called only for methods that support it (Method::prefill).
  /// @throws Error kUsage if the method cannot work with a prefix of `tokens` tokens
  virtual void begin_prefix(std::size_t /*tokens*/) {}
  virtual void end_prefix(Backend&) {}
  /// Of a fresh cache; nothing if there are no such tokens. @param prefix  tokens of a whole prefix; 0: none
  virtual std::optional<FullStart> full_start(std::size_t /*prefix*/) const { return std::nullopt; }
  /// Returns true if the cache holds the rows of all tokens, at their positions, so that others can choose some.
  virtual bool holds_every_token() const noexcept { return false; }
  virtual CacheBytes bytes() const noexcept = 0;
  /// Returns the largest memory at any time during the last attend().
  virtual CacheBytes peak() const noexcept { return bytes(); }
  /// Returns the number of positions that rotations use in a document of `tokens` tokens; fewer if positions are slots.
  virtual std::size_t positions(std::size_t tokens) const noexcept { return tokens; }
  /// Number of compressions so far, and the time they took.
  std::size_t compressions() const noexcept { return compressions_; }
  double compression_seconds() const noexcept { return compression_seconds_; }

 protected:
  /// Runs one compression, which is counted and timed. Waits for queued backend operations before and after.
  void compression(Backend& backend, const std::function<void()>& work);

 private:
  std::size_t compressions_ = 0;
  double compression_seconds_ = 0;
};

/// Treatment of the first tokens of a document.
struct Prefix {
  std::size_t tokens = 0;  // not scored
  bool whole = false;      // compressed once, at their end
};

/// A model's cache: one LayerCache per layer, nullptr for a layer without attention, and the states of its recurrent
/// blocks, which are the same in every method.
class Cache {
 public:
  explicit Cache(std::vector<std::unique_ptr<LayerCache>> layers, Prefix prefix = {})
      : layers_(std::move(layers)), prefix_(prefix) {}

  const Prefix& prefix() const noexcept { return prefix_; }
  void begin_prefix();
  void end_prefix(Backend& backend);
  LayerCache& layer(std::size_t index) { return *layers_.at(index); }
  std::vector<std::unique_ptr<LayerCache>>& layers() noexcept { return layers_; }
  /// A single member of a pass moves the state on; several members begin at it and do not change it.
  RecurrentState& recurrent(std::size_t layer) { return recurrent_[layer]; }
  /// From now on a single member does not change the states either: later passes begin where this one ended.
  void hold_recurrent_states() noexcept { holds_recurrent_states_ = true; }
  bool holds_recurrent_states() const noexcept { return holds_recurrent_states_; }
  /// The keys of a layer's index of tokens, [token, dim], under the same rules as recurrent().
  std::vector<float>& index_keys(std::size_t layer) { return index_keys_[layer]; }
  /// Bytes of the recurrent states, which bytes() does not include.
  std::size_t recurrent_bytes() const noexcept;
  /// Returns the start of each layer, with the same number of tokens; nothing if a layer's cache has none.
  std::optional<std::vector<FullStart>> full_start() const;
  /// Returns the smallest max_tokens_per_call() of all layers.
  std::size_t max_tokens_per_call() const noexcept;
  CacheBytes bytes() const noexcept;
  CacheBytes peak() const noexcept;
  std::size_t positions(std::size_t tokens) const noexcept;
  /// Maximum over all layers.
  std::size_t compressions() const noexcept;
  /// Sum over all layers.
  double compression_seconds() const noexcept;

 private:
  std::vector<std::unique_ptr<LayerCache>> layers_;
  std::map<std::size_t, RecurrentState> recurrent_;       // [layer]
  std::map<std::size_t, std::vector<float>> index_keys_;  // [layer]
  bool holds_recurrent_states_ = false;
  Prefix prefix_;
};

}  // namespace kvs::inline caches
