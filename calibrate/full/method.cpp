#include "calibrate/method.h"

#include "caches/full.h"

namespace kvs {

constinit const CacheMethod kFullMethod{
    "full", Prefill::kEither, [](Parameters&, const CacheLayer& layer) { return make_full_cache(layer.store); }};

}  // namespace kvs
