#pragma once

#include <memory>
#include <vector>

#include "io/hdf5/capture_file.h"
#include "model/rope.h"
#include "states/state_source.h"

namespace kvs {

/// States read back from a capture; k_post that was not stored is recomputed from k_pre. One document's layer is in
/// memory at a time.
class CaptureSource final : public StateSource {
 public:
  /// @param skip_corrupt  documents with a dataset whose CRC does not match are left out whole: the capture is read
  /// once
  ///        for it here. The reader must have been opened with the same.
  /// @throws Error kData if no document is whole.
  CaptureSource(CaptureReader& reader, Backend& backend, bool skip_corrupt = false);

  std::size_t documents() const noexcept override { return documents_.size(); }
  std::size_t tokens() const noexcept override { return static_cast<std::size_t>(reader_->header().tokens); }
  Backend& backend() const noexcept override { return *backend_; }
  RopeTable rope(std::size_t layer) const override { return ropes_[kind_of(layer)].table(); }
  /// @throws Error kInput if the capture lacks a layer or state that is needed, or on what read_states() throws.
  void visit(std::size_t document, const StateNeeds& needs, const Sink& sink) override;

  /// Documents of the capture that are left out because they are damaged.
  std::size_t skipped() const noexcept { return static_cast<std::size_t>(reader_->documents()) - documents_.size(); }

 private:
  void check(const StateNeeds& needs) const;
  bool intact(std::size_t document);
  bool read(std::size_t document, std::size_t layer, StateKind kind);
  void load(std::size_t document, std::size_t layer, StateKind kind);
  BackendView<const float, 3> rotated_keys(std::size_t layer, bool keep_k_pre);
  std::size_t kind_of(std::size_t layer) const { return reader_->header().rope_kinds[layer]; }

  CaptureReader* reader_;
  Backend* backend_;
  std::vector<RopeMemory> ropes_;  // [kind]
  std::vector<float> host_;        // one dataset as read
  ByState<BackendTensor<float, 3>> memory_;
  std::vector<std::size_t> documents_;  // the capture's, those that can be read
};

}  // namespace kvs
