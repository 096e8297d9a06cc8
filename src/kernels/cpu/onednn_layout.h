#pragma once

#include <dnnl.hpp>
#include <optional>

#include "core/dtype.h"
#include "kernels/cpu/products.h"

namespace kvs::cpu {

/// Rows of the product that a layout is chosen for.
inline constexpr std::size_t kTypicalRows = 128;

const dnnl::engine& onednn_engine();

/// x · packed (+ bias), or added to what is there, in the library's words.
dnnl::matmul::primitive_desc describe(const ProductShape& shape, DType type, const dnnl::memory::desc& packed);

dnnl::memory::dims matrix_dims(std::size_t rows, std::size_t columns);

/// How oneDNN packs B [k, n] for products of many rows.
class OnednnLayout final : public PackedLayout {
 public:
  OnednnLayout(std::size_t n, std::size_t k, DType type);
  const dnnl::memory::desc& desc() const noexcept { return desc_; }

  /// The first `k` rows and `n` columns, if they lie in memory as a matrix of their own; with all rows also `n` columns
  /// from any multiple of column_step() on.
  std::optional<dnnl::memory::desc> leading_part(std::size_t n, std::size_t k) const;

 private:
  DType type_;
  dnnl::memory::desc desc_;
};

}  // namespace kvs::cpu
