// SPDX-License-Identifier: Apache-2.0
#include "calibrate/prompt_caches.h"

#include <utility>

namespace kvs::inline calibrate {

ParameterSource prefix_parameters(std::size_t tokens) {
  return {{{"prefix", tokens}, {"prefill", tokens > 0 ? "whole" : "stepwise"}}, "--prefill: ", ErrorCode::kUsage};
}

std::function<Cache(const Prompt&)> prompt_cache_maker(const TaskCache& cache, Backend& backend,
                                                       const ModelConfig& model, std::size_t longest) {
  if (cache.choice.method->prefill == Prefill::kNone)
    return [make = cache_maker(cache.choice, backend, model, longest)](const Prompt&) { return make(); };
  return [&backend, &model, cache](const Prompt& prompt) {
    CacheChoice made = cache.choice;
    made.parameters.push_back(prefix_parameters(cache.prefill == "stepwise"  ? 0
                                                : cache.prefill == "context" ? prompt.context
                                                                             : prompt.ids.size()));
    return cache_maker(std::move(made), backend, model, prompt.ids.size())();
  };
}

}  // namespace kvs::inline calibrate
