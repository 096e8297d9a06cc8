// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/onednn_layout.h"

namespace kvs::cpu {
namespace {

using dnnl::memory;

memory::data_type dnnl_type(DType type) {
  return type == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::desc packed_desc(std::size_t n, std::size_t k, DType type) {
  const memory::desc any(matrix_dims(k, n), dnnl_type(type), memory::format_tag::any);
  return describe({kTypicalRows, n, k}, type, any).weights_desc();
}

/// Returns the number of elements of an inner block along `axis`.
memory::dim block_extent(const memory::desc& desc, int axis) {
  const auto& blocking = desc.data.format_desc.blocking;
  memory::dim extent = 1;
  for (int i = 0; i < blocking.inner_nblks; ++i)
    if (blocking.inner_idxs[i] == axis) extent *= blocking.inner_blks[i];
  return extent;
}

/// Returns true if `part`, a smaller matrix, has the memory layout of the leading part of `whole`.
bool is_prefix(const memory::desc& part, const memory::desc& whole) {
  const auto &a = part.data.format_desc.blocking, &b = whole.data.format_desc.blocking;
  if (part.data.extra.flags != whole.data.extra.flags || a.inner_nblks != b.inner_nblks) return false;
  for (int i = 0; i < a.inner_nblks; ++i)
    if (a.inner_idxs[i] != b.inner_idxs[i] || a.inner_blks[i] != b.inner_blks[i]) return false;
  for (int axis = 0; axis < 2; ++axis)
    if (part.data.padded_dims[axis] > block_extent(part, axis) && a.strides[axis] != b.strides[axis]) return false;
  return true;
}

}  // namespace

const dnnl::engine& onednn_engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

memory::dims matrix_dims(std::size_t rows, std::size_t columns) {
  return {static_cast<memory::dim>(rows), static_cast<memory::dim>(columns)};
}

dnnl::matmul::primitive_desc describe(const ProductShape& shape, DType type, const memory::desc& packed) {
  const auto plain = memory::format_tag::ab;
  const memory::desc x(matrix_dims(shape.m, shape.k), dnnl_type(type), plain);
  const memory::desc out(matrix_dims(shape.m, shape.n), memory::data_type::f32, plain);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (shape.accumulate) {
    dnnl::post_ops after;
    after.append_sum(1.0F);
    attributes.set_post_ops(after);
  }
  if (!shape.bias) return {dnnl::matmul::desc(x, packed, out), attributes, onednn_engine()};
  const memory::desc bias(matrix_dims(1, shape.n), memory::data_type::f32, plain);
  return {dnnl::matmul::desc(x, packed, bias, out), attributes, onednn_engine()};
}

OnednnLayout::OnednnLayout(std::size_t n, std::size_t k, DType type)
    : PackedLayout(n, k), type_(type), desc_(packed_desc(n, k, type)) {
  bytes_ = desc_.get_size();
  const auto& data = desc_.data;
  const auto step = static_cast<std::size_t>(block_extent(desc_, 1));
  const auto stride = static_cast<std::size_t>(data.format_desc.blocking.strides[1]);
  const auto padded_k = static_cast<std::size_t>(data.padded_dims[0]);
  const std::size_t item = memory::data_type_size(desc_.data_type());
  const bool columns_outermost = step * padded_k == stride && step < n;
  column_step_ = columns_outermost ? step : n;
  step_bytes_ = columns_outermost ? stride * item : bytes_;
}

std::optional<memory::desc> OnednnLayout::leading_part(std::size_t n, std::size_t k) const {
  if (n == n_ && k == k_) return desc_;
  if (k != k_) {
    const memory::desc part = packed_desc(n, k, type_);
    return is_prefix(part, desc_) ? std::optional(part) : std::nullopt;
  }
  // Only a part at the right edge may have a number of columns that does not fill whole blocks.
  const std::size_t first = n % column_step_ == 0 ? 0 : n_ - n;
  if (column_step_ == n_ || first % column_step_ != 0) return std::nullopt;
  memory::desc part = desc_.submemory_desc(matrix_dims(k, n), matrix_dims(0, first));
  part.data.offset0 = 0;
  return part;
}

}  // namespace kvs::cpu
