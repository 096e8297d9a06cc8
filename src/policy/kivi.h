#pragma once

#include <cstddef>
#include <memory>

#include "policy/cache_method.h"

namespace kvs {

struct KiviOptions {
  std::size_t bits = 4;        // 2 or 4
  std::size_t group = 32;      // g: tokens of a channel (keys) or channels of a token (values) that share a scale
  std::size_t residual = 128;  // R, a multiple of g: recent tokens that stay as they are
};

/// Keys after RoPE are quantised by channel, in groups of `group` tokens: all whole multiples of R tokens, after the
/// token that completes one has attended. Values are quantised by token, in groups of `group` channels, one by one when
/// they are older than the last R. A token reads itself and both windows as they are.
/// Source: Liu et al. (2024), KIVI, arXiv:2402.02750, section 4, and its public code (new_pack.py, llama_kivi.py).
/// Deviation: minimum and step are rounded to f16 before the codes are made, so that the codes fit what is read back.
std::unique_ptr<LayerCache> make_kivi_cache(const KiviOptions& options);
extern const CacheMethod kKiviMethod;

}  // namespace kvs
