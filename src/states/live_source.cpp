// SPDX-License-Identifier: Apache-2.0
#include "states/live_source.h"

#include <algorithm>

#include "core/error.h"
#include "model/passes_together.h"

namespace kvs::inline states {

namespace {

/// Returns the states of the only member.
BackendView<const float, 3> first_member(const BackendView<float, 4>& states) { return states.slice(0); }

/// Passes each needed layer to the sink during the forward pass. RoPE works in place, so states that are needed before
/// and after it are copied.
class Visitor final : public StateHook {
 public:
  Visitor(std::size_t document, const StateNeeds& needs, const StateSource::Sink& sink)
      : document_(document), needs_(&needs), sink_(&sink) {}

  void before_rope(LayerStates& states) override {
    if (!wanted(states.layer)) return;
    current_ = {};
    current_.document = document_;
    current_.layer = states.layer;
    if (needs_->x) current_.x = states.x;
    if (wanted(StateKind::kV)) current_[StateKind::kV] = first_member(states.v);
    if (wanted(StateKind::kQPre)) current_[StateKind::kQPre] = kept(states.backend, states.q, q_copy_);
    if (wanted(StateKind::kKPre)) current_[StateKind::kKPre] = kept(states.backend, states.k, k_copy_);
    if (!wanted(StateKind::kKPost)) (*sink_)(current_);
  }

  void after_rope(LayerStates& states) override {
    if (!wanted(StateKind::kKPost) || !wanted(states.layer)) return;
    current_[StateKind::kKPost] = first_member(states.k);
    (*sink_)(current_);
  }

 private:
  bool wanted(StateKind kind) const { return needs_->states.contains(kind); }
  bool wanted(std::size_t layer) const { return std::ranges::binary_search(needs_->layers, layer); }

  BackendView<const float, 3> kept(Backend& backend, const BackendView<float, 4>& states,
                                   BackendTensor<float, 4>& copy) const {
    if (!wanted(StateKind::kKPost)) return first_member(states);
    if (copy.view().shape() != states.shape()) copy = BackendTensor<float, 4>(backend, states.shape());
    backend.copy(copy.view().data(), states.data(), copy.bytes());
    return first_member(copy.view());
  }

  std::size_t document_;
  const StateNeeds* needs_;
  const StateSource::Sink* sink_;
  DocumentStates current_;
  BackendTensor<float, 4> q_copy_, k_copy_;
};

}  // namespace

LiveSource::LiveSource(Decoder& decoder, std::vector<std::vector<std::int32_t>> documents)
    : decoder_(&decoder), documents_(std::move(documents)) {
  if (documents_.empty()) throw Error(ErrorCode::kInternal, "LiveSource", "no documents");
  for (const std::vector<std::int32_t>& tokens : documents_) {
    if (tokens.empty() || tokens.size() != documents_.front().size()) {
      throw Error(ErrorCode::kInternal, "LiveSource", "documents must have the same number of tokens");
    }
  }
}

std::size_t LiveSource::visits_together(std::size_t kept) const {
  return passes_together(decoder_->model(), tokens(), kept);
}

void LiveSource::visit(std::size_t document, const StateNeeds& needs, const Sink& sink) {
  if (needs.layers.empty()) return;
  if (needs.layers.back() >= decoder_->model().config().layers()) {
    throw Error(ErrorCode::kInternal, "LiveSource", "layer " + std::to_string(needs.layers.back()) + " of too few");
  }
  Visitor visitor(document, needs, sink);
  ResidualStream hidden = decoder_->embed(documents_.at(document));
  decoder_->advance(hidden, needs.layers.back() + 1, &visitor);
}

}  // namespace kvs::inline states
