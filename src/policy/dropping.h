#pragma once

#include <memory>

#include "policy/cache_method.h"
#include "policy/slot_cache.h"

namespace kvs {

/// Of the slots after the sinks, a compression keeps the last ⌊γN⌋: FreqKV's schedule without its transform,
/// as that paper's baseline.
std::unique_ptr<LayerCache> make_dropping_cache(const SlotOptions& options, const StateStore& store = {});
extern const CacheMethod kDroppingMethod;

}  // namespace kvs
