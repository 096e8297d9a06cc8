// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "core/error.h"
#include "export/codec/row_codec.h"
#include "export/codec/states.h"

namespace kvs::inline exporting {
namespace {

/// Computes the attention's results from those in coefficients, [query_head, head_dim]. The weights p of a query sum to
/// 1, so Σ p v = S Σ p y + mean.
void leave_basis(CpuCoding& ops, const TransformProducts& products, const BackendView<float, 2>& mixed, float* out) {
  const std::size_t kv_heads = products.shape.kv_heads, group = mixed.extent(0) / kv_heads, head_dim = mixed.extent(1);
  const auto of_group = [&](float* data, std::size_t kv_head) {
    return BackendView<float, 2>(std::span(data + kv_head * group * head_dim, group * head_dim), {group, head_dim});
  };
  for (std::size_t kv_head = 0; kv_head < kv_heads; ++kv_head)
    ops.linear_f32(of_group(mixed.data(), kv_head), *products.synthesis[kv_head], of_group(out, kv_head), false);
}

}  // namespace

void RowCodec::attend(CpuCoding& ops, int threads, std::span<const std::byte> stream, std::size_t first,
                      std::size_t count, const kvs_codec_queries& queries, float* out, float* log_sums) const {
  const StreamHead head = read_head(stream);
  const Places places = checked_places(head, stream);
  if (products().rows != TransformRows::kHead)
    throw Error(ErrorCode::kUsage, "rows", "found rows by layer, expected rows by head");
  check_tokens(head, first, count, 1);
  const RowBuffer::Part q = gather_queries(ops.memory(), queries, products().shape, threads);
  // The kernel's own token is the last one. Its past is the coded tokens, then the sinks.
  const std::size_t before = count - 1, sinks = places.sinks_among(first, before), coded = before - sinks;
  const TokenRows::Part own = std::move(read(ops, stream, places, {first + before, 1}, {}).front()),
                        late = late_sinks(ops, stream, places, head.first_position + first, first, before);
  rotate(ops, 0, own, head.first_position + first + before, RopeDirection::kForward);
  const RowBuffer::Part own_v = head_products(ops, products().analysis, own.v.view()),
                        late_v = head_products(ops, products().analysis, late.v.view());
  const auto rows = [&](bool keys) {
    StoredRows held = rows_at(stream.data() + places.codes, places.coded, keys);
    held.data =
        static_cast<const std::byte*>(held.data) + held.bytes(first + sinks - std::min(first + sinks, places.sinks));
    held.count = coded;
    return held;
  };
  PastKv past(rows(true), rows(false), {late.k.view(), sinks}, {late_v.view(), sinks});
  KeyRope::Rows turns;
  if (rope(0).chunks() > 0 && before > 0) {
    turns = rope(0).rows(ops.memory(), head.first_position + first + sinks, before);
    past.slots = turns.table;
  }
  const BackendTensor<float, 2> mixed(ops.memory(), {queries.heads, products().shape.head_dim});
  ops.attend({.q = q.view(),
              .k = own.k.view(),
              .v = own_v.view(),
              .past = past,
              .scale = queries.scale,
              .softcap = queries.softcap},
             mixed.view(), {log_sums, queries.heads});
  leave_basis(ops, products(), mixed.view(), out);
}

TokenRows::Part RowCodec::late_sinks(CpuCoding& ops, std::span<const std::byte> stream, const Places& places,
                                     std::size_t position, std::size_t first, std::size_t count) const {
  const std::size_t sinks = places.sinks_among(first, count);
  if (sinks == 0) return empty_part(ops.memory(), products().shape, 0);
  TokenRows::Part late = std::move(read(ops, stream, places, {first, sinks}, {}).front());
  rotate(ops, 0, late, position, RopeDirection::kForward);
  rotate(ops, 0, late, position + count, RopeDirection::kInverse);
  return late;
}

}  // namespace kvs::inline exporting
