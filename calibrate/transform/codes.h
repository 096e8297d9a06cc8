// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "caches/token_rows.h"
#include "calibrate/transform/coder.h"
#include "calibrate/transform/products.h"

namespace kvs::inline calibrate {

/// Codes of keys before RoPE and values of consecutive tokens of one sequence, in one layer or in a group of layers.
class TransformCodes {
 public:
  virtual ~TransformCodes() = default;

  virtual std::size_t count() const noexcept = 0;
  virtual CacheBytes bytes() const noexcept = 0;
  /// Codes tokens from `first` on. @param layers  [layer of the group]
  /// @param inputs  TokenInputs of these tokens, and below of the copied ones; empty without a prediction
  /// @return kLayer: the error cost of each token
  virtual std::vector<double> append(Backend& backend, std::span<const TokenStates> layers, std::size_t first,
                                     const BackendView<const float, 4>& inputs) = 0;
  /// Returns the decoded states of tokens [first, first + count) in a layer of the group. A group's layers read all
  /// tokens in order: they are decoded for the first layer and kept until the last one has them.
  virtual TokenRows::Part copy(Backend& backend, std::size_t layer, std::size_t first, std::size_t count,
                               const BackendView<const float, 4>& inputs) = 0;
  virtual void drop_front(Backend& backend, std::size_t count) = 0;

  /// Returns true if attend() reads codes directly.
  virtual bool attends() const noexcept { return false; }
  /// Computes the attention of a single token, rotated, over the codes, then over `late`, then over itself.
  /// @param late  values, and keys whose row n becomes the rotated key when rotated at position `first` + count() + n
  /// @param first  position of the first coded token
  virtual void attend(const LayerStates& states, std::size_t first, const TokenRows::Part& late, const Operand& out);
};

/// Codes of whole tokens, kLayer: rows of coefficients, [1, 1, token, coefficient].
class JointCodes : public TransformCodes {
 public:
  explicit JointCodes(std::shared_ptr<const TransformProducts> products) : products_(std::move(products)) {}

  TokenRows::Part copy(Backend& backend, std::size_t layer, std::size_t first, std::size_t count,
                       const BackendView<const float, 4>& inputs) final;

 protected:
  const TransformProducts& products() const noexcept { return *products_; }

 private:
  virtual RowBuffer::Part decode(Backend& backend, std::size_t first, std::size_t count) const = 0;

  std::shared_ptr<const TransformProducts> products_;
  RowBuffer::Part all_;  // of a group of several layers, while it reads
};

std::unique_ptr<TransformCodes> make_transform_codes(std::shared_ptr<const TransformProducts> products);

}  // namespace kvs::inline calibrate
