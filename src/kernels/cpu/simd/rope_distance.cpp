#include "kernels/cpu/simd/functions.h"

namespace kvs::cpu {
inline namespace KVS_ISA {
namespace {

constexpr std::size_t kComponents = 4;  // as in kernels/rope_operands.h
using Lane = double __attribute__((vector_size(kDoubles * sizeof(double))));
using LaneBits = std::int64_t __attribute__((vector_size(kDoubles * sizeof(double))));

inline void add_magnitude(Lane& sum, const Lane& x) {
  sum += (Lane)((LaneBits)x & 0x7fffffffffffffff);  // casts between vectors keep the bits
}

}  // namespace

/// sums[n] += |Σ δ − δ_n| over the pairs of one query and eight keys.
void add_distances(const DistancePairs& in) noexcept {
  auto *deltas = reinterpret_cast<Lane*>(in.deltas), *sums = reinterpret_cast<Lane*>(in.sums);
  const auto *keys = reinterpret_cast<const Lane*>(in.keys), *mask = reinterpret_cast<const Lane*>(in.mask);
  Lane left{};
  for (std::size_t n = 0; n < in.count; ++n) {
    const double* query = in.query + in.chunks[n] * kComponents;
    const Lane* key = keys + in.chunks[n] * kComponents;
    Lane delta = query[0] * key[0] + query[1] * key[1] + query[2] * key[2] + query[3] * key[3];
    if (mask != nullptr) delta *= *mask;
    deltas[n] = delta;
    left += delta;
  }
  for (std::size_t n = 0; n < in.count; ++n) add_magnitude(sums[n], left - deltas[n]);
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
