#pragma once

#include <cstddef>
#include <vector>

#include "core/tensor_view.h"

namespace kvs {

struct FreqkvOptions {
  std::size_t sinks = 4;   // tokens at the start that stay as they are
  double gamma = 0.5;      // share of the tokens after them that is kept
  bool high_band = false;  // keep the highest coefficients instead of the lowest
  bool rescale = true;     // multiply by √(L/N), which keeps a constant signal constant
};

/// L = ⌊γN⌋: pseudo-tokens that N tokens become. @throws Error kUsage unless 0 < γ ≤ 1.
std::size_t freqkv_length(std::size_t tokens, double gamma);

/// How often a cache of `cache_size` slots is compressed while `tokens` tokens go in, the first time just before the
/// token that finds it full: ⌈(T − cache_size)/(N − L)⌉ with N = cache_size − sinks.
/// @throws Error kUsage if a compression would free nothing.
std::size_t freqkv_compressions(std::size_t tokens, std::size_t cache_size, const FreqkvOptions& options);

/// One compression of all tokens after the sinks: y = √(L/N) · IDCT_L(DCT_N(x)[0:L]), both orthonormal, per channel.
/// @param states  [head, token, head_dim], keys before RoPE or values
/// @return [head, sinks + L, head_dim]
/// @throws Error kUsage if there are no tokens after the sinks or L is 0.
/// Source: FreqKV, equations 4 to 6.
std::vector<float> freqkv_compress(TensorView<const float, 3> states, const FreqkvOptions& options);

}  // namespace kvs
