#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "caches/token_rows.h"
#include "calibrate/transform/products.h"

namespace kvs {

/// Keys before RoPE and values of consecutive tokens of one sequence, as codes.
class TransformCodes {
 public:
  struct Coded {
    TokenRows::Part states;     // what tokens are held as
    std::vector<double> costs;  // of kLayer: what the errors of each cost
  };

  virtual ~TransformCodes() = default;

  virtual std::size_t count() const noexcept = 0;
  virtual CacheBytes bytes() const noexcept = 0;
  /// Codes tokens of k and v, [1, kv_head, token, head_dim], from `first` on.
  virtual Coded append(Backend& backend, const BackendView<float, 4>& k, const BackendView<float, 4>& v,
                       std::size_t first) = 0;
  /// What all are held as.
  virtual TokenRows::Part copy(Backend& backend) const = 0;
  virtual void drop_front(Backend& backend, std::size_t count) = 0;

  /// Whether attend() reads codes where they lie.
  virtual bool attends() const noexcept { return false; }
  /// out = attention of a single token, rotated, over the codes, then over `late`, then over itself.
  /// @param late  keys that row n of turns as position `first` + count() + n makes the rotated ones, and values
  /// @param first  position of the first token that is coded
  virtual void attend(const LayerStates& states, std::size_t first, const TokenRows::Part& late, const Operand& out);
};

/// Keys and values of so many tokens, not yet written.
TokenRows::Part empty_part(Backend& backend, const TransformShape& shape, std::size_t tokens);

std::unique_ptr<TransformCodes> make_transform_codes(std::shared_ptr<const TransformProducts> products);

}  // namespace kvs
