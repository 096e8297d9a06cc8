// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>

#include "kernels/forward_ops.h"

namespace kvs::inline kernels {

/// Columns [first, first + count) of packed rows.
struct Columns {
  BackendView<const float, 2> rows;
  std::size_t first = 0, count = 0;

  bool empty() const noexcept { return count == 0; }
};

/// A causal convolution over the tokens of each member, by channel.
struct ConvolutionInput {
  Columns x;            // [member · token, channel]
  Columns factor = {};  // multiplies x; or empty
  std::size_t members = 1;
  BackendView<const float, 2> taps;       // [tap, channel]; the last tap is the current token's
  BackendView<const float, 1> bias = {};  // [channel], or empty
  /// The inputs of the tokens before, [tap − 1, channel]. A single member moves it on to its last tokens; several
  /// members read it and do not change it.
  BackendView<float, 2> past;
  bool silu = true;  // of the result
};

/// A linear recurrence of each value head, with a matrix S [key_dim, value_dim] as its state:
///   step = min(max(softplus(s + bias), least), most),  S ← e^(decay · step) · S,  S ← S + k wᵀ,  o = Sᵀ q + skip · v.
/// State-space duality (Mamba-2): w = step · v. Delta rule: w = sigmoid(strength) · (v − Sᵀ k), S already decayed.
/// Sources: Dao & Gu (2024), arXiv:2405.21060; Yang et al., Gated Delta Networks (2024), arXiv:2412.06464, equation 10.
struct RecurrenceInput {
  Columns queries, keys;  // [member · token, key_head · key_dim]
  Columns values;         // [member · token, value_head · value_dim]
  Columns steps;          // s: [member · token, value_head]
  Columns strengths;      // [member · token, value_head], of the delta rule; empty: state-space duality
  std::size_t members = 1, key_heads = 0, value_heads = 0;
  bool tiled = false;  // value head i reads key head i mod key_heads; otherwise a key head serves consecutive ones
  BackendView<const float, 1> decay, step_bias;  // [value_head]; decay < 0
  BackendView<const float, 1> skip = {};         // [value_head], or empty
  float least_step = 0, most_step = std::numeric_limits<float>::infinity();
  bool unit_keys = false;       // q and k of a head are first divided by their lengths, and q by sqrt(key_dim)
  BackendView<float, 3> state;  // [value_head, key_dim, value_dim]; moved on by a single member, as `past` above

  std::size_t key_dim() const noexcept { return keys.count / key_heads; }
  std::size_t value_dim() const noexcept { return values.count / value_heads; }
  std::size_t tokens() const noexcept { return keys.rows.extent(0) / members; }
  std::size_t key_head(std::size_t value_head) const noexcept {
    return tiled ? value_head % key_heads : value_head / (value_heads / key_heads);
  }
};

/// Rows that a second matrix of rows gates: f(gate) ⊙ norm(x) · gain, norm(f(gate) ⊙ x) · gain, or f(gate) ⊙ x.
struct GateInput {
  BackendView<float, 2> x;                // [row, channel]; scratch afterwards
  Columns gate;                           // [row, channel]
  bool silu = true;                       // f: SiLU, or the identity
  BackendView<const float, 1> gain = {};  // [norm_channels] for every group, or [channel]; empty: no norm
  std::size_t norm_channels = 0;          // adjacent channels that share a mean of squares
  float epsilon = 0;
  bool gate_first = false;
};

/// The operations of layers with a state of fixed size. @throws Error kUnsupported on a device other than the CPU.
class RecurrentOps {
 public:
  virtual ~RecurrentOps() = default;

  /// out: [member · token, channel].
  virtual void convolve(const ConvolutionInput& input, BackendView<float, 2> out);
  /// out: [member · token, value_head · value_dim]. Tokens are processed in chunks by matrix products; the results
  /// equal those of single tokens up to rounding. Cost per token and value head: about 6 · key_dim · value_dim
  /// multiply-adds.
  virtual void recur(const RecurrenceInput& input, BackendView<float, 2> out);
  /// out: [row, channel].
  virtual void gate(const GateInput& input, Operand out);
  /// x = x ⊙ sigmoid(gate), in place. gate: [row, channel].
  virtual void gate_by_sigmoid(BackendView<const float, 2> gate, Operand x);
};

}  // namespace kvs::inline kernels
