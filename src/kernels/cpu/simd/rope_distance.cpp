// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/functions.h"

namespace kvs::cpu {
inline namespace KVS_ISA {
namespace {

constexpr std::size_t kComponents = 4;  // as in kernels/rope_operands.h
constexpr std::size_t kRegisters = kDoubles * sizeof(double) / sizeof(DoubleLanes);
using LongLanes = std::int64_t __attribute__((vector_size(sizeof(DoubleLanes))));

inline DoubleLanes magnitude(DoubleLanes x) {
  return (DoubleLanes)((LongLanes)x & 0x7fffffffffffffff);  // casts between vectors keep the bits
}

}  // namespace

/// sums[n] += |Σ δ − δ_n| over the pairs of one query and eight keys.
void add_distances(const DistancePairs& in) noexcept {
  auto *deltas = reinterpret_cast<DoubleLanes*>(in.deltas), *sums = reinterpret_cast<DoubleLanes*>(in.sums);
  const auto *keys = reinterpret_cast<const DoubleLanes*>(in.keys),
             *mask = reinterpret_cast<const DoubleLanes*>(in.mask);
  for (std::size_t part = 0; part < kRegisters; ++part) {
    DoubleLanes left{};
    for (std::size_t n = 0; n < in.count; ++n) {
      const double* query = in.query + in.chunks[n] * kComponents;
      const DoubleLanes* key = keys + in.chunks[n] * kComponents * kRegisters + part;
      DoubleLanes delta = query[0] * key[0] + query[1] * key[kRegisters] + query[2] * key[2 * kRegisters] +
                          query[3] * key[3 * kRegisters];
      if (mask != nullptr) delta *= mask[part];
      deltas[n * kRegisters + part] = delta;
      left += delta;
    }
    for (std::size_t n = 0; n < in.count; ++n)
      sums[n * kRegisters + part] += magnitude(left - deltas[n * kRegisters + part]);
  }
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
