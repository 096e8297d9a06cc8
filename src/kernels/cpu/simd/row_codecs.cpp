#include "kernels/codecs/rows.h"
#include "kernels/cpu/simd/functions.h"

namespace kvs::cpu {
inline namespace KVS_ISA {

void encode_rows(const CodedRows& coded) noexcept {
  const std::size_t step = codecs::rows_of_unit(coded.format), bytes = rows_bytes(coded.format, coded.values, step);
  codecs::with_codec(coded.format.kind, [&](auto codec) {
    for (std::size_t row = 0; row < coded.rows; row += step)
      codecs::encode_unit<decltype(codec)>(coded.format, coded.values, coded.scale, coded.x + row * coded.values,
                                           coded.bytes + row / step * bytes, coded.scratch);
  });
}

void decode_rows(const CodedRows& coded) noexcept {
  const std::size_t step = codecs::rows_of_unit(coded.format), bytes = rows_bytes(coded.format, coded.values, step);
  codecs::with_codec(coded.format.kind, [&](auto codec) {
    for (std::size_t row = 0; row < coded.rows; row += step)
      codecs::decode_unit<decltype(codec)>(coded.format, coded.values, coded.scale, coded.bytes + row / step * bytes,
                                           coded.x + row * coded.values, coded.scratch);
  });
}

std::size_t row_scratch(const RowFormat& format, std::size_t values) noexcept {
  return codecs::unit_scratch(format, values);
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
