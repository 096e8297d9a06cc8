// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dnnl.hpp>
#include <optional>

#include "core/dtype.h"
#include "kernels/cpu/products.h"

namespace kvs::cpu {

/// Number of product rows for which layouts are chosen.
inline constexpr std::size_t kTypicalRows = 128;

const dnnl::engine& onednn_engine();

/// Describes x · packed (+ bias), optionally accumulating, as a oneDNN primitive.
dnnl::matmul::primitive_desc describe(const ProductShape& shape, DType type, const dnnl::memory::desc& packed);

dnnl::memory::dims matrix_dims(std::size_t rows, std::size_t columns);

/// oneDNN's packed layout of B [k, n] for products of many rows.
class OnednnLayout final : public PackedLayout {
 public:
  OnednnLayout(std::size_t n, std::size_t k, DType type);
  const dnnl::memory::desc& desc() const noexcept { return desc_; }

  /// Returns the first `k` rows and `n` columns if they are laid out as a separate matrix. With all rows, the `n`
  /// columns may also start at any multiple of column_step().
  std::optional<dnnl::memory::desc> leading_part(std::size_t n, std::size_t k) const;

 private:
  DType type_;
  dnnl::memory::desc desc_;
};

}  // namespace kvs::cpu
