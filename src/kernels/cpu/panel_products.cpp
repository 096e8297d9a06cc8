// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/aligned.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/simd/loops.h"

namespace kvs::cpu {
namespace {

using Scratch = std::vector<AlignedBuffer>;  // [worker]

/// Layout [panel][k][kPanel]. The last panel is padded with zeros.
class PanelLayout final : public PackedLayout {
 public:
  PanelLayout(std::size_t n, std::size_t k, DType type) : PackedLayout(n, k) {
    column_step_ = std::min(kPanel, n);
    step_bytes_ = k * kPanel * item_size(type);
    bytes_ = (n + kPanel - 1) / kPanel * step_bytes_;
  }
};

class PanelMultiplication final : public Product {
 public:
  PanelMultiplication(const ProductShape& shape, std::size_t panel_stride, DType type, const Scratch& scratch)
      : shape_(shape), panel_stride_(panel_stride), type_(type), scratch_(&scratch) {}

  bool run(std::size_t worker, const ProductArguments& arguments) const noexcept override {
    loops().multiply({.m = shape_.m,
                      .n = shape_.n,
                      .k = shape_.k,
                      .bf16 = type_ == DType::kBF16,
                      .accumulate = shape_.accumulate,
                      .x = arguments.x,
                      .panels = arguments.packed,
                      .panel_stride = panel_stride_,
                      .bias = shape_.bias ? arguments.bias : nullptr,
                      .out = arguments.out,
                      .scratch = static_cast<float*>((*scratch_)[worker].data())});
    return true;
  }

 private:
  ProductShape shape_;
  std::size_t panel_stride_;
  DType type_;
  const Scratch* scratch_;
};

float as(float value, const float* /*type*/) { return value; }
std::uint16_t as(float value, const std::uint16_t* /*type*/) { return f32_to_bf16(value); }

/// Packs `columns` columns of one panel. Blocks of rows keep the cache lines of both sides in the cache.
template <class T>
void pack_panel(const float* from, std::size_t columns, std::size_t column_stride, std::size_t row_stride,
                std::size_t rows, T* to) {
  constexpr std::size_t kBlock = 16;
  for (std::size_t first = 0; first < rows; first += kBlock) {
    const std::size_t last = std::min(first + kBlock, rows);
    for (std::size_t column = 0; column < columns; ++column)
      for (std::size_t row = first; row < last; ++row)
        to[row * kPanel + column] = as(from[column * column_stride + row * row_stride], to);
  }
}

class PanelEngine final : public ProductEngine {
 public:
  PanelEngine(DType type, std::size_t workers) : ProductEngine(type), scratch_(workers) {}

  std::shared_ptr<const PackedLayout> layout(std::size_t n, std::size_t k) override {
    return std::make_shared<PanelLayout>(n, k, type());
  }

  void pack(const PackedLayout& layout, void* packed, std::size_t first, std::size_t count, const float* from,
            std::size_t column_stride, std::size_t row_stride) const override {
    for (std::size_t column = 0; column < count; column += kPanel, from += kPanel * column_stride) {
      auto* panel = static_cast<std::byte*>(packed) + (first + column) / kPanel * layout.step_bytes();
      const std::size_t columns = std::min(kPanel, count - column);
      if (type() == DType::kBF16)
        pack_panel(from, columns, column_stride, row_stride, layout.k(), reinterpret_cast<std::uint16_t*>(panel));
      else
        pack_panel(from, columns, column_stride, row_stride, layout.k(), reinterpret_cast<float*>(panel));
    }
  }

  std::shared_ptr<const Product> product(const ProductShape& shape, const PackedLayout& layout) override {
    const bool bf16 = type() == DType::kBF16;
    const std::size_t floats = loops().panel_scratch(shape.m, shape.n, shape.k, bf16, shape.accumulate);
    for (AlignedBuffer& buffer : scratch_) buffer.reserve(floats * sizeof(float));
    return std::make_shared<PanelMultiplication>(shape, layout.step_bytes() / item_size(type()), type(), scratch_);
  }

 private:
  Scratch scratch_;
};

}  // namespace

std::unique_ptr<ProductEngine> make_panel_products(DType type, std::size_t workers) {
  return std::make_unique<PanelEngine>(type, workers);
}

}  // namespace kvs::cpu
