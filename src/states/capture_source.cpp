// SPDX-License-Identifier: Apache-2.0
#include "states/capture_source.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "states/capture_run.h"

namespace kvs::inline states {

CaptureSource::CaptureSource(CaptureReader& reader, Backend& backend, bool skip_corrupt)
    : reader_(&reader), backend_(&backend) {
  for (const RopeAngles& angles : rope_angles_of(reader.header())) {
    ropes_.push_back(make_rope_memory(backend, angles, reader.header().tokens));
  }
  for (std::size_t document = 0; document < reader.documents(); ++document)
    if (!skip_corrupt || intact(document)) documents_.push_back(document);
  if (documents_.empty())
    throw Error(
        ErrorCode::kData, "capture",
        "found " + std::to_string(reader.documents()) + " documents, none of them whole, expected at least one");
}

void CaptureSource::check(const StateNeeds& needs) const {
  const CaptureHeader& header = reader_->header();
  for (const std::size_t layer : needs.layers) {
    if (!std::ranges::binary_search(header.layers, static_cast<std::int32_t>(layer))) {
      throw Error(ErrorCode::kInput, "capture", "layer " + std::to_string(layer) + " was not captured");
    }
  }
  if (needs.x) throw Error(ErrorCode::kInput, "capture", "a capture does not hold layer inputs; a model and texts do");
  for (const StateKind kind : needs.states) {
    const bool derived = kind == StateKind::kKPost && header.states.contains(StateKind::kKPre);
    if (!header.states.contains(kind) && !derived) {
      throw Error(ErrorCode::kInput, "capture", "holds no " + std::string(name_of(kind)) + ", which is needed here");
    }
  }
}

bool CaptureSource::read(std::size_t document, std::size_t layer, StateKind kind) {
  const std::array<std::size_t, 3> shape = reader_->header().shape_of(layer, kind);
  host_.resize(shape[0] * shape[1] * shape[2]);
  return reader_->read_states(document, static_cast<std::int32_t>(layer), kind, {host_, shape});
}

bool CaptureSource::intact(std::size_t document) {
  for (const std::int32_t layer : reader_->header().layers) {
    for (const StateKind kind : reader_->header().states) {
      if (!read(document, static_cast<std::size_t>(layer), kind)) return false;
    }
  }
  return true;
}

void CaptureSource::load(std::size_t document, std::size_t layer, StateKind kind) {
  if (!read(document, layer, kind)) {
    throw Error(ErrorCode::kInput, "capture", "document " + std::to_string(document) + " changed while it was read");
  }
  const auto [heads, tokens_here, head_dim] = reader_->header().shape_of(layer, kind);
  views_[kind] = memory_.try_emplace(kind, *backend_).first->second.states({1, heads, tokens_here, head_dim}).slice(0);
  backend_->upload(views_[kind].data(), host_.data(), views_[kind].size() * sizeof(float));
}

/// Computes k_post from the k_pre in memory, in place unless k_pre is needed too.
BackendView<const float, 3> CaptureSource::rotated_keys(std::size_t layer, bool keep_k_pre) {
  const BackendView<float, 3>& k_pre = views_[StateKind::kKPre];
  const auto [heads, tokens_here, head_dim] = k_pre.shape();
  BackendView<float, 4> target = k_pre.reshape<4>({1, heads, tokens_here, head_dim});
  if (keep_k_pre) {
    target = memory_.try_emplace(StateKind::kKPost, *backend_).first->second.states(target.shape());
    backend_->copy(target.data(), k_pre.data(), k_pre.size() * sizeof(float));
  }
  backend_->rope(target, rope(layer), 0, RopeDirection::kForward, {});
  return target.slice(0);
}

void CaptureSource::visit(std::size_t document, const StateNeeds& needs, const Sink& sink) {
  check(needs);
  StateSet stored = needs.states;
  const bool rotates = stored.contains(StateKind::kKPost) && !reader_->header().states.contains(StateKind::kKPost);
  if (rotates) {
    stored.erase(StateKind::kKPost);
    stored.insert(StateKind::kKPre);
  }
  const std::size_t stored_document = documents_[document];
  for (const std::size_t layer : needs.layers) {
    for (const StateKind kind : stored) load(stored_document, layer, kind);
    DocumentStates states;
    states.document = stored_document;
    states.layer = layer;
    for (const StateKind kind : needs.states)
      states[kind] = kind == StateKind::kKPost && rotates ? rotated_keys(layer, needs.states.contains(StateKind::kKPre))
                                                          : views_[kind];
    sink(states);
  }
}

}  // namespace kvs::inline states
