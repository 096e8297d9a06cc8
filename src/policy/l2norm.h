#pragma once

#include <memory>

#include "policy/cache_method.h"
#include "policy/token_rows.h"

namespace kvs {

/// Of a prefix, the ⌊ratio · P⌋ tokens of each KV head whose keys are shortest stay (the first of equal ones); what
/// comes later is all kept. A key's length is the same before and after RoPE.
/// Source: Devoto et al. (2024), "A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression",
/// arXiv:2406.11430.
std::unique_ptr<LayerCache> make_l2norm_cache(double ratio, const StateStore& store = {});
extern const CacheMethod kL2normMethod;

}  // namespace kvs
