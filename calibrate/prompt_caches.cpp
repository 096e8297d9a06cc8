// SPDX-License-Identifier: Apache-2.0
#include "calibrate/prompt_caches.h"

#include <utility>

#include "calibrate/cache_options.h"
#include "calibrate/registry.h"
#include "core/error.h"
#include "tasks/questions.h"

namespace kvs::inline calibrate {
namespace {

/// Returns --prefill; its default for a method that compresses only a whole prefix is context.
std::string prefill_of(const Options& options, const Method& method) {
  const std::string& prefill = options.text("prefill");
  if (method.prefill == Prefill::kNone && prefill != "stepwise")
    throw Error(ErrorCode::kUsage, "--prefill",
                "found " + prefill + ", expected stepwise with a config of " + std::string(method.name));
  if (method.prefill != Prefill::kWhole || prefill != "stepwise") return prefill;
  if (options.given("prefill"))
    throw Error(ErrorCode::kUsage, "--prefill",
                "found stepwise, expected context or prompt: the method acts at a prefix's end alone");
  return "context";
}

}  // namespace

ParameterSource prefix_parameters(std::size_t tokens) {
  return {{{"prefix", tokens}, {"prefill", tokens > 0 ? "whole" : "stepwise"}}, "--prefill: ", ErrorCode::kUsage};
}

void check_prefill(const Options& options, const std::string& beside) {
  const Json settings = parse_settings(options.list("set"), "--set");
  for (const char* name : {"prefix", "prefill"})
    if (settings.contains(name))
      throw Error(ErrorCode::kUsage, std::string("--set ") + name,
                  "cannot be combined with " + beside + "; see --prefill");
  if (options.has("method")) (void)prefill_of(options, *find_method(options.text("method")));
}

TaskCache prompted_cache(const Options& options, const ModelSource& source) {
  const Method* named = options.has("method") ? find_method(options.text("method")) : nullptr;
  // The length of a prefix is the length of its question, which is not known yet.
  const Json assumed = named != nullptr && named->prefill == Prefill::kWhole
                           ? prefix_parameters(kLongestQuestion).values
                           : Json::object();
  CacheChoice choice = choose_cache(options, source, nullptr, assumed);
  std::string prefill = prefill_of(options, *choice.method);
  return {std::move(choice), std::move(prefill)};
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
