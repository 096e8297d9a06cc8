// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "model/decoder.h"
#include "states/state_source.h"

namespace kvs::inline states {

/// States computed by a live model: each visit runs the layers up to the last one needed.
class LiveSource final : public StateSource {
 public:
  /// @param documents  token ids, all of the same length. @throws Error kInternal otherwise or if there are none.
  LiveSource(Decoder& decoder, std::vector<std::vector<std::int32_t>> documents);

  std::size_t documents() const noexcept override { return documents_.size(); }
  std::size_t tokens() const noexcept override { return documents_.front().size(); }
  Backend& backend() const noexcept override { return decoder_->model().backend(); }
  RopeTable rope(std::size_t layer) const override { return decoder_->model().rope(layer, tokens()); }
  std::size_t visits_together(std::size_t kept) const override;
  void visit(std::size_t document, const StateNeeds& needs, const Sink& sink) override;

 private:
  Decoder* decoder_;
  std::vector<std::vector<std::int32_t>> documents_;
};

}  // namespace kvs::inline states
