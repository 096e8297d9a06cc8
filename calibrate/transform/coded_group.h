// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "caches/token_rows.h"
#include "calibrate/transform/codes.h"
#include "calibrate/transform/token_inputs.h"

namespace kvs::inline calibrate {

/// What the layers of a group, often a single one, hold of a sequence: tokens [start, end()), first the sinks, then
/// coded tokens, then waiting tokens. Keys are before RoPE.
class CodedGroup {
 public:
  CodedGroup(std::shared_ptr<const TransformProducts> products, CodedSides sides, std::shared_ptr<TokenInputs> inputs);

  const TransformProducts& products() const noexcept { return *products_; }
  TransformCodes& codes() noexcept { return *codes_; }
  const TransformCodes& codes() const noexcept { return *codes_; }
  std::size_t layers() const noexcept { return layers_.size(); }
  std::size_t start() const noexcept { return start_; }
  std::size_t coded_from(std::size_t layer) const noexcept { return start_ + layers_[layer].sinks.count(); }
  std::size_t waiting_from(std::size_t layer) const noexcept { return coded_from(layer) + codes_->count(); }
  std::size_t end(std::size_t layer) const noexcept { return waiting_from(layer) + layers_[layer].waiting.count(); }
  /// Returns the number of tokens that may come to a layer before older ones have to be coded.
  std::size_t room(std::size_t layer) const noexcept;
  /// Bytes of a layer: the codes count for the first one.
  CacheBytes bytes(std::size_t layer) const noexcept;
  /// Returns a layer's largest bytes since begin().
  CacheBytes peak(std::size_t layer) const noexcept { return layers_[layer].peak; }

  /// Begins a call of a layer.
  void begin(std::size_t layer, const LayerStates& states);
  /// Keeps the new tokens of a layer and writes their decoded states to `states`.
  void keep(const LayerStates& states, std::size_t layer);
  /// Called after some tokens of all layers: drops old tokens, and codes the older half of the waiting tokens once
  /// there are enough.
  /// @return in a group of one layer, the decoded states of these
  std::optional<TokenRows::Part> settle(Backend& backend);
  /// Codes the first `count` waiting tokens of all layers. @return as settle()
  std::optional<TokenRows::Part> code_waiting(Backend& backend, std::size_t count);
  /// Returns everything that a layer holds, rotated.
  TokenRows read(const LayerStates& states, std::size_t layer);
  /// Returns a layer's waiting tokens, then the sinks, with keys that rotate as if all of them came after the coded
  /// tokens.
  TokenRows::Part late_rows(const LayerStates& states, std::size_t layer) const;

 private:
  /// The tokens of a layer that are not only coded.
  struct Layer {
    TokenRows sinks, outliers, waiting;
    CacheBytes peak;
  };

  RowBuffer::Part inputs_of(Backend& backend, std::size_t position, std::size_t count) const;
  std::size_t missing_sinks(std::size_t layer) const noexcept;
  void code(Backend& backend, const std::vector<TokenStates>& layers, std::size_t first);
  void put_coded(Backend& backend, std::size_t layer, std::size_t position, const BackendView<float, 4>& k,
                 const BackendView<float, 4>& v, std::size_t first);
  double threshold(std::size_t position) const;
  void drop_old(Backend& backend);

  std::shared_ptr<const TransformProducts> products_;
  CodedSides sides_;
  std::shared_ptr<TokenInputs> inputs_;  // null without a prediction
  bool fills_inputs_ = false;
  std::unique_ptr<TransformCodes> codes_;
  std::vector<Layer> layers_;
  std::size_t start_ = 0, window_ = 0, chunk_ = 0;
  std::vector<std::uint32_t> places_;  // positions of all outliers, ascending
  std::size_t gone_ = 0;               // number of first ones that are no longer stored
};

}  // namespace kvs::inline calibrate
