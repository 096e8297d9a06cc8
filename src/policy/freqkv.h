#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/tensor_view.h"
#include "policy/cache_method.h"
#include "policy/slot_cache.h"

namespace kvs {

struct FreqkvOptions {
  SlotOptions slots = {};
  bool high_band = false;  // keep the highest coefficients instead of the lowest
  bool rescale = true;     // multiply by √(L/N), which keeps a constant signal constant
  bool iterate = true;     // compress what is in the cache; off: the whole history each time, which is then held, too
};

/// Low frequencies along the token axis: the N slots after the sinks become L = ⌊γN⌋ pseudo-tokens, channel by channel,
/// of the keys before RoPE (of the rotated ones without slots) and of the values.
/// Source: FreqKV, equations 4 to 6.
std::unique_ptr<LayerCache> make_freqkv_cache(const FreqkvOptions& options, const StateStore& store = {});
extern const CacheMethod kFreqkvMethod;

/// y = √(L/N) · IDCT_L(DCT_N(x)[0:L]), both orthonormal, per channel, in double.
/// @param states  [head, N, head_dim] in host memory;  @return [head, kept, head_dim]
std::vector<float> freqkv_compress(TensorView<const float, 3> states, std::size_t kept, const FreqkvOptions& options);

/// How often a cache is compressed while `tokens` tokens go in: ⌈(T − cache_size)/(N − L)⌉.
std::size_t freqkv_compressions(std::size_t tokens, const SlotOptions& options);

}  // namespace kvs
