// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "io/hdf5/capture_file.h"
#include "model/rope_table.h"
#include "model/scratch.h"
#include "states/state_source.h"

namespace kvs::inline states {

/// Reads states from a capture. k_post that was not stored is recomputed from k_pre. Memory: one layer of one document.
class CaptureSource final : public StateSource {
 public:
  /// @param skip_corrupt  leaves out documents with a dataset whose CRC does not match. This reads the capture once.
  /// The reader must have been opened with the same value.
  /// @throws Error kData if no document is intact.
  CaptureSource(CaptureReader& reader, Backend& backend, bool skip_corrupt = false);

  std::size_t documents() const noexcept override { return documents_.size(); }
  std::size_t tokens() const noexcept override { return static_cast<std::size_t>(reader_->header().tokens); }
  Backend& backend() const noexcept override { return *backend_; }
  RopeTable rope(std::size_t layer) const override { return ropes_[kind_of(layer)].table(); }
  /// @throws Error kInput if the capture lacks a needed layer or state; also what read_states() throws.
  void visit(std::size_t document, const StateNeeds& needs, const Sink& sink) override;

  /// Number of damaged documents that are left out.
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
  std::map<StateKind, Scratch> memory_;
  ByState<BackendView<float, 3>> views_;  // of the layer that is loaded
  std::vector<std::size_t> documents_;    // numbers of the readable documents in the capture
};

}  // namespace kvs::inline states
