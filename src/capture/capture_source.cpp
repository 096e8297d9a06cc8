#include "capture/capture_source.h"

#include <algorithm>
#include <string>

#include "capture/capture_run.h"
#include "core/error.h"

namespace kvs {

namespace {

constexpr std::size_t index_of(StateKind kind) noexcept { return static_cast<std::size_t>(kind); }

bool needs_kind(const StateNeeds& needs, StateKind kind) noexcept {
  switch (kind) {
    case StateKind::kQPre:
      return needs.q_pre;
    case StateKind::kKPre:
      return needs.k_pre;
    case StateKind::kKPost:
      return needs.k_post;
    case StateKind::kV:
      return needs.v;
  }
  return false;
}

}  // namespace

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
  for (const StateKind kind : kStateKinds) {
    const bool stored = std::ranges::count(header.states, kind) > 0;
    const bool derived = kind == StateKind::kKPost && std::ranges::count(header.states, StateKind::kKPre) > 0;
    if (needs_kind(needs, kind) && !stored && !derived) {
      throw Error(ErrorCode::kInput, "capture", "holds no " + std::string(name_of(kind)) + ", which is needed here");
    }
  }
}

std::vector<StateKind> CaptureSource::kinds_to_read(const StateNeeds& needs) const {
  const std::vector<StateKind>& stored = reader_->header().states;
  const bool derive = needs.k_post && std::ranges::count(stored, StateKind::kKPost) == 0;
  std::vector<StateKind> kinds;
  for (const StateKind kind : stored) {
    if (needs_kind(needs, kind) || (derive && kind == StateKind::kKPre)) kinds.push_back(kind);
  }
  return kinds;
}

bool CaptureSource::read(std::size_t document, std::size_t layer, StateKind kind) {
  const CaptureHeader& header = reader_->header();
  const std::array<std::size_t, 3> shape{header.heads_of(kind), tokens(), header.head_dim};
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
  const CaptureHeader& header = reader_->header();
  BackendTensor<float, 3>& memory = memory_[index_of(kind)];
  if (memory.view().empty()) {
    memory = BackendTensor<float, 3>(*backend_, {header.heads_of(kind), tokens(), header.head_dim});
  }
  backend_->upload(memory.view().data(), host_.data(), memory.bytes());
}

/// k_post from the k_pre in memory: in place unless k_pre is asked for too.
BackendView<const float, 3> CaptureSource::rotated_keys(std::size_t layer, bool keep_k_pre) {
  BackendTensor<float, 3>& k_pre = memory_[index_of(StateKind::kKPre)];
  BackendTensor<float, 3>& k_post = memory_[index_of(StateKind::kKPost)];
  BackendView<float, 3> target = k_pre.view();
  if (keep_k_pre) {
    if (k_post.view().empty()) k_post = BackendTensor<float, 3>(*backend_, k_pre.view().shape());
    backend_->copy(k_post.view().data(), k_pre.view().data(), k_pre.bytes());
    target = k_post.view();
  }
  const auto [heads, tokens_here, head_dim] = target.shape();
  backend_->rope(target.reshape<4>({1, heads, tokens_here, head_dim}), rope(layer), 0, RopeDirection::kForward, {});
  return target;
}

void CaptureSource::visit(std::size_t document, const StateNeeds& needs, const Sink& sink) {
  check(needs);
  const std::vector<StateKind> kinds = kinds_to_read(needs);
  const std::size_t stored_document = documents_[document];
  for (const std::size_t layer : needs.layers) {
    for (const StateKind kind : kinds) load(stored_document, layer, kind);
    const auto view = [&](StateKind kind) -> BackendView<const float, 3> {
      return needs_kind(needs, kind) ? memory_[index_of(kind)].view() : BackendView<float, 3>();
    };
    DocumentStates states;
    states.document = stored_document;
    states.layer = layer;
    states.q_pre = view(StateKind::kQPre);
    states.k_pre = view(StateKind::kKPre);
    states.v = view(StateKind::kV);
    const bool stored = std::ranges::count(kinds, StateKind::kKPost) > 0;
    if (needs.k_post) states.k_post = stored ? view(StateKind::kKPost) : rotated_keys(layer, needs.k_pre);
    sink(states);
  }
}

}  // namespace kvs
