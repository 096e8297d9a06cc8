#include "policy/trellis_store.h"

#include <numeric>

#include "core/error.h"

namespace kvs {

RowStore trellis_store(std::span<const float> books, std::span<const std::size_t> bits,
                       std::span<const float> weights) {
  if (books.size() != kTrellisBooks || bits.size() != weights.size())
    throw Error(ErrorCode::kInternal, "trellis", "books or weights of another size");
  const std::size_t all = std::reduce(bits.begin(), bits.end());
  RowStore store{{.kind = RowKind::kTrellis, .group = static_cast<std::uint32_t>(all)}, {books.begin(), books.end()}};
  for (std::size_t n = 0; n < bits.size(); ++n) {
    const TrellisValue value{.weight = weights[n], .bits = static_cast<float>(bits[n])};
    store.scales.insert(store.scales.end(), {value.offset, value.scale, value.weight, value.bits});
  }
  return store;
}

}  // namespace kvs
