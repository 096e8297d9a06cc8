// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "caches/recurrent_state.h"
#include "model/model.h"
#include "model/scratch.h"

namespace kvs::inline model {

/// The state at which a recurrent block begins.
struct RecurrentStart {
  RecurrentState* state = nullptr;  // nullptr: zero. An empty state becomes zero
  bool moves = false;               // the only member moves `state` on
};

/// The block of a layer that mixes tokens by a state of fixed size.
class RecurrentBlock {
 public:
  explicit RecurrentBlock(Backend& backend)
      : backend_(&backend), projected_(backend), convolved_(backend), mixed_(backend), gated_(backend) {}

  /// Adds the block's output for `x` to `sum`. Long members are processed in pieces, so that memory is bounded.
  /// @param x  [member · token, d_model], normalised;  @param sum  [member · token, d_model]
  void add(const Operand& x, std::size_t members, const RecurrenceWeights& weights, const RecurrenceConfig& config,
           float epsilon, const RecurrentStart& start, const BackendView<float, 2>& sum);

 private:
  /// Consecutive tokens of one member, or all tokens of several members.
  struct Piece {
    Operand x;
    std::size_t members;
    const RecurrenceWeights& weights;
    const RecurrenceConfig& config;
    float epsilon;
    const RecurrentState& state;
  };
  RecurrentState& working_state(const RecurrenceConfig& config, const RecurrentStart& start);
  Operand mix(const Piece& piece);
  Operand mix_delta_net(const Piece& piece, const BackendView<float, 2>& projected);          // delta_net.cpp
  Operand mix_mamba2(const Piece& piece, const BackendView<float, 2>& projected);             // mamba2.cpp
  Operand mix_short_convolution(const Piece& piece, const BackendView<float, 2>& projected);  // short_convolution.cpp
  BackendView<float, 2> convolve(const Piece& piece, const Columns& x, const Columns& factor, bool silu);
  Operand gate(const Piece& piece, const BackendView<float, 2>& mixed, const Columns& gate);

  Backend* backend_;
  RecurrentState own_;  // of passes that keep no state
  Scratch projected_;   // f32 [row, projections]
  Scratch convolved_;   // f32 [row, channel]
  Scratch mixed_;       // f32 [row, value row]
  Scratch gated_;       // operand, the same
};

}  // namespace kvs::inline model
