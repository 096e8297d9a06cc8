// SPDX-License-Identifier: Apache-2.0
#include "caches/full.h"
#include "calibrate/method.h"

namespace kvs::inline calibrate {
namespace {

/// Keeps every token, whatever `turns` is.
std::unique_ptr<LayerCache> make_extra(Parameters& parameters, const CacheLayer& layer) {
  (void)parameters.count("turns", "turns that have no effect", 3, 1);
  return make_full_cache(layer.types);
}

}  // namespace

constinit const Method kExtraMethod{
    .name = "extra",
    .title = "the Extra method",
    .summary = "every token, after turns that have no effect",
    .paper = {.authors = "Nobody", .title = "Turns That Have No Effect", .link = "https://example.org", .year = 2026},
    .make = make_extra,
    .fixed_settings =
        [](std::size_t) {
          return std::vector<Json>{{{"turns", 2}}};
        },
    .obstacle =
        [](const ModelConfig& model) {
          return model.layers() < 100 ? std::string() : std::string("found 100 layers, expected fewer");
        },
    .notes = [](const ModelConfig&) { return std::vector<std::string>{"turns have no effect on this model"}; },
};

}  // namespace kvs::inline calibrate
