// SPDX-License-Identifier: Apache-2.0
#include "model/recurrent_block.h"

#include <algorithm>

namespace kvs::inline model {
namespace {

constexpr std::size_t kPieceRows = 4096;  // bounds the wide activations

RecurrentState zero_state(Backend& backend, const RecurrenceConfig& config) {
  RecurrentState state{
      BackendTensor<float, 2>(backend, {config.kernel - 1, config.channels()}),
      BackendTensor<float, 3>(backend, {config.value_heads, config.key_head_dim, config.value_head_dim})};
  const std::vector<float> zeros(std::max(state.inputs.view().size(), state.memory.view().size()));
  backend.upload(state.inputs.view().data(), zeros.data(), state.inputs.bytes());
  backend.upload(state.memory.view().data(), zeros.data(), state.memory.bytes());
  return state;
}

}  // namespace

/// Returns the state that a group of members begins at.
RecurrentState& RecurrentBlock::working_state(const RecurrenceConfig& config, const RecurrentStart& start) {
  if (start.state != nullptr && start.state->empty()) *start.state = zero_state(*backend_, config);
  if (start.moves) return *start.state;
  if (start.state == nullptr) {
    own_ = zero_state(*backend_, config);
  } else {
    own_ = {copy_of<float, 2>(*backend_, start.state->inputs.view()),
            copy_of<float, 3>(*backend_, start.state->memory.view())};
  }
  return own_;
}

void RecurrentBlock::add(const Operand& x, std::size_t members, const RecurrenceWeights& weights,
                         const RecurrenceConfig& config, float epsilon, const RecurrentStart& start,
                         const BackendView<float, 2>& sum) {
  const std::size_t tokens = x.rows / members, at_once = std::clamp<std::size_t>(kPieceRows / tokens, 1, members);
  for (std::size_t member = 0; member < members; member += at_once) {
    const RecurrentState& state = working_state(config, start);
    const std::size_t count = std::min(at_once, members - member);
    for (std::size_t token = 0; token < tokens; token += kPieceRows) {
      const std::size_t first = member * tokens + token, rows = count * std::min(kPieceRows, tokens - token);
      const Operand mixed = mix({operand_rows(*backend_, x, first, rows), count, weights, config, epsilon, state});
      const std::size_t width = sum.extent(1);
      backend_->linear(mixed, *weights.output, {std::span(sum.data() + first * width, rows * width), {rows, width}},
                       true);
    }
  }
}

/// Returns the input of the output projection.
Operand RecurrentBlock::mix(const Piece& piece) {
  const BackendView<float, 2> projected = projected_.matrix(piece.x.rows, piece.weights.input->rows());
  backend_->linear(piece.x, *piece.weights.input, projected, false);
  switch (piece.config.kind) {
    case RecurrenceConfig::Kind::kMamba2:
      return mix_mamba2(piece, projected);
    case RecurrenceConfig::Kind::kShortConvolution:
      return mix_short_convolution(piece, projected);
    case RecurrenceConfig::Kind::kDeltaNet:
    case RecurrenceConfig::Kind::kNone:
      break;
  }
  return mix_delta_net(piece, projected);
}

BackendView<float, 2> RecurrentBlock::convolve(const Piece& piece, const Columns& x, const Columns& factor, bool silu) {
  const BackendView<float, 2> convolved = convolved_.matrix(piece.x.rows, piece.config.channels());
  backend_->convolve({.x = x,
                      .factor = factor,
                      .members = piece.members,
                      .taps = piece.weights.taps.view(),
                      .bias = piece.weights.taps_bias.view(),
                      .past = piece.state.inputs.view(),
                      .silu = silu},
                     convolved);
  return convolved;
}

Operand RecurrentBlock::gate(const Piece& piece, const BackendView<float, 2>& mixed, const Columns& gate) {
  const Operand gated = gated_.operand(mixed.extent(0), mixed.extent(1));
  backend_->gate({.x = mixed,
                  .gate = gate,
                  .gain = piece.weights.norm.view(),
                  .norm_channels = piece.config.norm_channels,
                  .epsilon = piece.epsilon,
                  .gate_first = piece.config.gate_first},
                 gated);
  return gated;
}

}  // namespace kvs::inline model
