#include <type_traits>

#include "kernels/codecs/rows.h"
#include "kernels/cpu/simd/functions.h"

namespace kvs::cpu {
inline namespace KVS_ISA {
namespace {

/// run(values), as a constant for the sizes of nearly all groups: then loops over a group have no ends to care for.
template <class Run>
void with_size(std::size_t values, Run run) {
  switch (values) {
    case 32:
      return run(std::integral_constant<std::size_t, 32>{});
    case 64:
      return run(std::integral_constant<std::size_t, 64>{});
    case 128:
      return run(std::integral_constant<std::size_t, 128>{});
    default:
      return run(values);
  }
}

/// Whether rows are whole groups one after the other, and x what these stand for.
bool are_groups(const CodedRows& coded) {
  const RowFormat& format = coded.format;
  return !format.across_tokens && format.split == 0 && (coded.in_basis || !format.turns()) &&
         coded.values % group_of(format, coded.values).values == 0;
}

template <class Codec>
void decode_groups(const CodedRows& coded) {
  const RowGroup group = group_of(coded.format, coded.values);
  const std::size_t count = coded.rows * coded.values;
  with_size(group.values, [&](auto values) {
    const std::uint8_t* from = coded.bytes;
    for (std::size_t at = 0; at < count; at += values, from += group.bytes) Codec::decode(from, values, coded.x + at);
  });
  if (coded.format.kind == RowKind::kE4m3 && coded.scale != 1)
    for (std::size_t at = 0; at < count; ++at) coded.x[at] *= coded.scale;
}

}  // namespace

void encode_rows(const CodedRows& coded) noexcept {
  const std::size_t step = rows_of_unit(coded.format), bytes = rows_bytes(coded.format, coded.values, step);
  codecs::with_codec(coded.format.kind, [&](auto codec) {
    for (std::size_t row = 0; row < coded.rows; row += step)
      codecs::encode_unit<decltype(codec)>(coded.format, coded.values, coded.scale, coded.x + row * coded.values,
                                           coded.bytes + row / step * bytes, coded.scratch);
  });
}

void decode_rows(const CodedRows& coded) noexcept {
  const std::size_t step = rows_of_unit(coded.format), bytes = rows_bytes(coded.format, coded.values, step);
  codecs::with_codec(coded.format.kind, [&](auto codec) {
    if (are_groups(coded)) return decode_groups<decltype(codec)>(coded);
    for (std::size_t row = 0; row < coded.rows; row += step)
      codecs::decode_unit<decltype(codec)>(coded.format, coded.values, coded.scale, coded.in_basis,
                                           coded.bytes + row / step * bytes, coded.x + row * coded.values,
                                           coded.scratch);
  });
}

void turn_rows(const CodedRows& coded, RowTurn turn) noexcept {
  for (std::size_t row = 0; row < coded.rows; ++row)
    codecs::turn_row(coded.format, coded.values, turn, coded.x + row * coded.values, coded.scratch);
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
