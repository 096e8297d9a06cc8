#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "caches/token_rows.h"
#include "calibrate/transform/products.h"

namespace kvs::inline calibrate {

/// Codes of keys before RoPE and values of consecutive tokens of one sequence.
class TransformCodes {
 public:
  struct Coded {
    TokenRows::Part states;     // decoded states
    std::vector<double> costs;  // kLayer: error cost of each token
  };

  virtual ~TransformCodes() = default;

  virtual std::size_t count() const noexcept = 0;
  virtual CacheBytes bytes() const noexcept = 0;
  /// Codes tokens of k and v, [1, kv_head, token, head_dim], from `first` on.
  virtual Coded append(Backend& backend, const BackendView<float, 4>& k, const BackendView<float, 4>& v,
                       std::size_t first) = 0;
  /// Returns the decoded states of all tokens.
  virtual TokenRows::Part copy(Backend& backend) const = 0;
  virtual void drop_front(Backend& backend, std::size_t count) = 0;

  /// Returns true if attend() reads codes directly.
  virtual bool attends() const noexcept { return false; }
  /// Computes the attention of a single token, rotated, over the codes, then over `late`, then over itself.
  /// @param late  values, and keys whose row n becomes the rotated key when rotated at position `first` + count() + n
  /// @param first  position of the first coded token
  virtual void attend(const LayerStates& states, std::size_t first, const TokenRows::Part& late, const Operand& out);
};

std::unique_ptr<TransformCodes> make_transform_codes(std::shared_ptr<const TransformProducts> products);

}  // namespace kvs::inline calibrate
