// SPDX-License-Identifier: Apache-2.0
#include "model/decoder.h"

#include <cstdint>
#include <string>

#include "core/error.h"
#include "model/forward_pass.h"

namespace kvs::inline model {

Decoder::Decoder(const Model& model) : model_(&model), pass_(std::make_unique<ForwardPass>(model)) {}
Decoder::~Decoder() = default;

ResidualStream Decoder::embed(std::span<const std::int32_t> tokens, std::size_t first_position, std::size_t positions) {
  if (tokens.empty()) throw Error(ErrorCode::kInternal, "Decoder::embed", "no tokens");
  const std::size_t width = model_->config().d_model;
  ResidualStream hidden{.rows = BackendTensor<float, 3>(model_->backend(), {1, tokens.size(), width}),
                        .first_position = first_position,
                        .positions = positions == 0 ? first_position + tokens.size() : positions};
  model_->embed(tokens, hidden.rows.view().slice(0));
  hidden.layer_inputs = model_->layer_inputs(tokens, hidden.rows.view().slice(0));
  if (model_->config().streams.count > 1) pass_->altup.begin(hidden);
  return hidden;
}

namespace {

template <std::size_t Rank>
BackendTensor<float, Rank> repeated(Backend& backend, const BackendTensor<float, Rank>& states, std::size_t members) {
  if (states.view().empty()) return {};
  std::array<std::size_t, Rank> shape = states.view().shape();
  shape[0] = members;
  BackendTensor<float, Rank> all(backend, shape);
  for (std::size_t member = 0; member < members; ++member)
    backend.copy(all.view().slice(member).data(), states.view().data(), states.bytes());
  return all;
}

std::shared_ptr<const SharedStates> repeated(Backend& backend, const SharedStates& states, std::size_t members) {
  return std::make_shared<const SharedStates>(SharedStates{repeated(backend, states.k, members),
                                                           repeated(backend, states.v, members),
                                                           repeated(backend, states.k_post, members)});
}

}  // namespace

ResidualStream Decoder::repeat(const ResidualStream& hidden, std::size_t members) {
  if (hidden.members() != 1 || members == 0) {
    throw Error(ErrorCode::kInternal, "Decoder::repeat", "expected one member and a count above 0");
  }
  Backend& backend = model_->backend();
  ResidualStream batch{.rows = BackendTensor<float, 3>(backend, {members, hidden.tokens(), model_->config().d_model}),
                       .first_position = hidden.first_position,
                       .next_layer = hidden.next_layer,
                       .positions = hidden.positions};
  for (std::size_t member = 0; member < members; ++member) {
    backend.copy(batch.rows.view().slice(member).data(), hidden.rows.view().data(), hidden.rows.bytes());
  }
  batch.layer_inputs = hidden.layer_inputs;
  if (hidden.chosen != nullptr) {
    std::vector<std::int32_t> chosen;
    for (std::size_t member = 0; member < members; ++member)
      chosen.insert(chosen.end(), hidden.chosen->begin(), hidden.chosen->end());
    batch.chosen = std::make_shared<const std::vector<std::int32_t>>(std::move(chosen));
  }
  for (const BackendTensor<float, 3>& other : hidden.others) batch.others.push_back(repeated(backend, other, members));
  for (const auto& [layer, states] : hidden.shared)
    batch.shared[layer] = members == 1 ? states : repeated(backend, *states, members);
  return batch;
}

void Decoder::advance(ResidualStream& hidden, std::size_t last_layer, StateHook* hook, Cache* cache) {
  if (last_layer > model_->config().layers()) {
    throw Error(ErrorCode::kInternal, "Decoder::advance", "layer " + std::to_string(last_layer) + " of too few");
  }
  pass_->advance(hidden, last_layer, hook, cache);
}

void Decoder::replay(const RecordedStates& recorded, std::size_t first, std::size_t count, std::size_t positions,
                     Cache& cache) {
  pass_->replay(recorded, first, count, positions, cache);
}

}  // namespace kvs::inline model
