// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/trellis_store.h"

#include "core/error.h"

namespace kvs::inline calibrate {

RowType trellis_store(std::span<const float> books, std::span<const TrellisValue> values, std::size_t heads) {
  if (books.size() != kTrellisBooks || heads == 0 || values.size() % heads != 0)
    throw Error(ErrorCode::kInternal, "trellis", "books or values of another size");
  RowType store{{.kind = RowKind::kTrellis}, {books.begin(), books.end()}};
  for (std::size_t head = 0; head < heads; ++head) {
    std::size_t bits = 0;
    for (const TrellisValue& value : values.subspan(head * values.size() / heads, values.size() / heads)) {
      bits += static_cast<std::size_t>(value.bits);
      store.scales.insert(store.scales.end(), {value.offset, value.scale, value.weight, value.bits});
    }
    if (head == 0) store.format.group = static_cast<std::uint32_t>(bits);
    if (bits != store.format.group) throw Error(ErrorCode::kInternal, "trellis", "heads of unequal bits");
  }
  return store;
}

std::vector<TrellisValue> trellis_coefficients(std::span<const std::size_t> bits, std::span<const float> weights) {
  std::vector<TrellisValue> values;
  for (std::size_t n = 0; n < bits.size(); ++n)
    values.push_back({.weight = weights[n], .bits = static_cast<float>(bits[n])});
  return values;
}

}  // namespace kvs::inline calibrate
