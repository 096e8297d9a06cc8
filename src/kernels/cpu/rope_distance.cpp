// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/rope_sums.h"
#include "kernels/cpu/rope_tile.h"

namespace kvs::cpu {
namespace {

constexpr std::size_t kRows = 64;  // queries per task

/// Memory of one thread.
struct Workspace {
  explicit Workspace(std::size_t half)
      : a(kRows * half * kComponents), b(half * kComponents), delta(half), sum(half), active(half) {}

  std::vector<double> a;    // [query, chunk, component]
  std::vector<Lane> b;      // [chunk, component], one key per lane
  std::vector<Lane> delta;  // [candidate]
  std::vector<Lane> sum;    // [candidate]
  std::vector<std::size_t> active;
};

/// Sets the mask to 1 if the lane's key is not after the query, else to 0.
void set_causal(std::span<double, kDoubles> mask, std::size_t first_key, std::size_t query) {
  for (std::size_t lane = 0; lane < kDoubles; ++lane) mask[lane] = first_key + lane <= query ? 1.0 : 0.0;
}

/// Adds the pairs of queries [first, first + kRows) of one head to errors[active chunk].
void distance_rows(const RopeOperands& in, std::size_t head, std::size_t first, std::span<const std::uint8_t> rotated,
                   Workspace& work, double* errors) {
  std::size_t count = 0;
  for (std::size_t chunk = 0; chunk < in.half; ++chunk)
    if (rotated[chunk] == 0) work.active[count++] = chunk;
  const std::size_t last = std::min(first + kRows, in.tokens), stride = in.half * kComponents;
  for (std::size_t token = first; token < last; ++token)
    rope_components(in, RopeSide::kQuery, head, token, 0, work.a.data() + (token - first) * stride, 1, kComponents);
  std::ranges::fill(work.sum, Lane{});
  std::ranges::fill(work.b, Lane{});
  for (std::size_t keys = 0; keys < last; keys += kDoubles) {
    for (std::size_t lane = 0; lane < kDoubles && keys + lane < last; ++lane)
      rope_components(in, RopeSide::kKey, head / in.group, keys + lane, 0,
                      reinterpret_cast<double*>(work.b.data()) + lane, kDoubles, kComponents * kDoubles);
    alignas(Lane) std::array<double, kDoubles> mask{};
    for (std::size_t token = std::max(first, keys); token < last; ++token) {
      set_causal(mask, keys, token);
      const bool whole = keys + kDoubles <= token + 1;
      loops().add_distances({.count = count,
                             .chunks = work.active.data(),
                             .query = work.a.data() + (token - first) * stride,
                             .keys = reinterpret_cast<const double*>(work.b.data()),
                             .mask = whole ? nullptr : mask.data(),
                             .deltas = reinterpret_cast<double*>(work.delta.data()),
                             .sums = reinterpret_cast<double*>(work.sum.data())});
    }
  }
  for (std::size_t n = 0; n < count; ++n)
    for (std::size_t lane = 0; lane < kDoubles; ++lane) errors[work.active[n]] += work.sum[n].values[lane];
}

}  // namespace

void accumulate_rope_distance(const RopeOperands& in, TensorView<const std::uint8_t, 2> rotated,
                              TensorView<double, 2> errors) {
  const std::array shape{in.query_heads, in.half};
  if (rotated.shape() != shape || errors.shape() != shape)
    throw Error(ErrorCode::kInternal, "rope distance", "the sums' shape is not [query_head, chunk]");
  const std::size_t tiles = (in.tokens + kRows - 1) / kRows;
  std::vector<double> partial(in.query_heads * tiles * in.half, 0.0);  // [query_head, tile, chunk]
  std::vector<Workspace> work(static_cast<std::size_t>(omp_get_max_threads()), Workspace(in.half));
  // The last rows see the most keys, so they are scheduled first.
#pragma omp parallel for schedule(dynamic, 1)
  for (std::size_t task = 0; task < in.query_heads * tiles; ++task) {
    const std::size_t head = task % in.query_heads, tile = tiles - 1 - task / in.query_heads;
    distance_rows(in, head, tile * kRows, rotated.slice(head).span(),
                  work[static_cast<std::size_t>(omp_get_thread_num())],
                  partial.data() + (head * tiles + tile) * in.half);
  }
  for (std::size_t row = 0; row < in.query_heads * tiles; ++row)
    for (std::size_t chunk = 0; chunk < in.half; ++chunk) errors(row / tiles, chunk) += partial[row * in.half + chunk];
}

}  // namespace kvs::cpu
