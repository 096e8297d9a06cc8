// SPDX-License-Identifier: Apache-2.0
#include "calibrate/method.h"

#include "caches/full.h"

namespace kvs::inline calibrate {

constinit const Method kFullMethod{
    .name = "full",
    .title = "the full cache",
    .summary = "every token, unchanged or in a storage type",
    .prefill = Prefill::kEither,
    .make = [](Parameters&, const CacheLayer& layer) { return make_full_cache(layer.types); },
    .fixed_settings = [](std::size_t) { return std::vector{Json::object()}; },
    .priority = 0,
};

}  // namespace kvs::inline calibrate
