// SPDX-License-Identifier: Apache-2.0
#include "kernels/spectral_ops.h"

#include "core/error.h"

namespace kvs::inline kernels {

void check_spectrum_attention(const AttentionInput& input, const KeySpectrum& spectrum, const Operand& out) {
  check_attention(input, out);
  const auto [members, query_heads, tokens, head_dim] = input.q.shape();
  const std::size_t kv_heads = input.k.extent(1), samples = spectrum.samples();
  for (const BinnedStates* const states : {&spectrum.k, &spectrum.v})
    if (states->sums.shape() != std::array{kv_heads, states->bins(), std::size_t{2}, head_dim} ||
        states->grid.samples != samples || samples < spectrum.tokens)
      throw Error(ErrorCode::kInternal, "attention", "expected a spectrum of [kv_head, bin, 2, head_dim]");
  if (members != 1 || input.window != 0 || input.chunk != 0 || query_heads / kv_heads * tokens > kMaxQueryRows)
    throw Error(ErrorCode::kInternal, "attention", "expected a spectrum for few tokens of one member without a window");
}

void check_grid(const std::array<std::size_t, 3>& x, const std::array<std::size_t, 4>& spectrum, const BinGrid& grid) {
  if (x[1] > grid.samples || spectrum != std::array<std::size_t, 4>{x[0], grid.bins.size(), 2, x[2]})
    throw Error(ErrorCode::kInternal, "spectrum", "tokens, grid and bins do not fit together");
}

}  // namespace kvs::inline kernels
