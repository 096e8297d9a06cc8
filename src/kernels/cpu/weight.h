// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "kernels/cpu/products.h"
#include "kernels/cpu/weight_memory.h"
#include "kernels/forward_ops.h"

namespace kvs::cpu {

/// A weight in the layout of ProductEngine. It can be cut at multiples of the layout's column_step() rows.
class PackedWeight final : public Weight {
 public:
  /// @param for_f32  WeightSource::f32
  PackedWeight(DType type, std::shared_ptr<const PackedLayout> layout, WeightMemory packed, std::vector<float> bias,
               bool for_f32)
      : Weight(type, layout->n(), layout->k(), layout->bytes() + bias.size() * sizeof(float)),
        layout_(std::move(layout)),
        packed_(std::move(packed)),
        bias_(std::move(bias)),
        for_f32_(for_f32) {}

  const PackedLayout& layout() const noexcept { return *layout_; }
  bool is_for_f32() const noexcept { return for_f32_; }
  bool has_bias() const noexcept { return !bias_.empty(); }
  /// Returns the packed rows from `row` on. `row` is a multiple of column_step().
  const void* rows_from(std::size_t row) const noexcept {
    return static_cast<const std::byte*>(packed_.data()) + row / layout_->column_step() * layout_->step_bytes();
  }
  const float* bias_from(std::size_t row) const noexcept { return bias_.empty() ? nullptr : bias_.data() + row; }

 private:
  std::shared_ptr<const PackedLayout> layout_;
  WeightMemory packed_;
  std::vector<float> bias_;
  bool for_f32_;
};

/// @throws Error kInternal unless a CPU backend made `weight` for rows with `columns` values, for linear() or for
/// linear_f32().
const PackedWeight& checked_weight(const Weight& weight, std::size_t columns, bool for_f32);

}  // namespace kvs::cpu
