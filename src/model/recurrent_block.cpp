#include "model/recurrent_block.h"

#include <algorithm>

namespace kvs::inline model {
namespace {

constexpr std::size_t kPieceRows = 4096;  // bounds the wide activations

RecurrentState zero_state(Backend& backend, const DeltaNetConfig& block) {
  RecurrentState state{BackendTensor<float, 2>(backend, {block.kernel - 1, block.channels()}),
                       BackendTensor<float, 3>(backend, {block.value_heads, block.key_head_dim, block.value_head_dim})};
  const std::vector<float> zeros(std::max(state.inputs.view().size(), state.memory.view().size()));
  backend.upload(state.inputs.view().data(), zeros.data(), state.inputs.bytes());
  backend.upload(state.memory.view().data(), zeros.data(), state.memory.bytes());
  return state;
}

}  // namespace

/// Returns the state that a group of members begins at.
RecurrentState& RecurrentBlock::working_state(const LayerConfig& layer, const RecurrentStart& start) {
  if (start.state != nullptr && start.state->empty()) *start.state = zero_state(*backend_, layer.delta_net);
  if (start.moves) return *start.state;
  if (start.state == nullptr) {
    own_ = zero_state(*backend_, layer.delta_net);
  } else {
    own_ = {copy_of<float, 2>(*backend_, start.state->inputs.view()),
            copy_of<float, 3>(*backend_, start.state->memory.view())};
  }
  return own_;
}

void RecurrentBlock::add(const Operand& x, std::size_t members, const RecurrenceWeights& weights,
                         const LayerConfig& layer, float epsilon, const RecurrentStart& start,
                         const BackendView<float, 2>& sum) {
  const std::size_t tokens = x.rows / members, at_once = std::clamp<std::size_t>(kPieceRows / tokens, 1, members);
  const auto piece = [&](std::size_t first, std::size_t rows, std::size_t count, const RecurrentState& state) {
    const BackendView<float, 2> part(std::span(sum.data() + first * sum.extent(1), rows * sum.extent(1)),
                                     {rows, sum.extent(1)});
    add_delta_net(operand_rows(*backend_, x, first, rows), count, weights, layer.delta_net, epsilon, state, part);
  };
  for (std::size_t member = 0; member < members; member += at_once) {
    const RecurrentState& state = working_state(layer, start);
    const std::size_t count = std::min(at_once, members - member);
    for (std::size_t token = 0; token < tokens; token += kPieceRows)
      piece(member * tokens + token, count * std::min(kPieceRows, tokens - token), count, state);
  }
}

void RecurrentBlock::add_delta_net(const Operand& x, std::size_t members, const RecurrenceWeights& weights,
                                   const DeltaNetConfig& block, float epsilon, const RecurrentState& state,
                                   const BackendView<float, 2>& sum) {
  const std::size_t rows = x.rows, keys = block.key_rows(), values = block.value_rows(), heads = block.value_heads;
  const BackendView<float, 2> projected = projected_.matrix(rows, weights.input->rows()),
                              convolved = convolved_.matrix(rows, block.channels()),
                              mixed = mixed_.matrix(rows, values);
  backend_->linear(x, *weights.input, projected, false);
  backend_->convolve({.x = {projected, 0, block.channels()},
                      .members = members,
                      .taps = weights.taps.view(),
                      .past = state.inputs.view()},
                     convolved);
  const std::size_t gate = block.channels();
  backend_->recur({.queries = {convolved, 0, keys},
                   .keys = {convolved, keys, keys},
                   .values = {convolved, 2 * keys, values},
                   .steps = {projected, gate + values + heads, heads},
                   .strengths = {projected, gate + values, heads},
                   .members = members,
                   .key_heads = block.key_heads,
                   .value_heads = heads,
                   .decay = weights.decay.view(),
                   .step_bias = weights.step_bias.view(),
                   .unit_keys = true,
                   .state = state.memory.view()},
                  mixed);
  const Operand gated = gated_.operand(rows, values);
  backend_->gate({.x = mixed,
                  .gate = {projected, gate, values},
                  .gain = weights.norm.view(),
                  .norm_channels = block.value_head_dim,
                  .epsilon = epsilon},
                 gated);
  backend_->linear(gated, *weights.output, sum, true);
}

}  // namespace kvs::inline model
