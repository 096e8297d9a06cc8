// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "calibrate/cache_choice.h"
#include "options/options.h"
#include "tasks/prompt.h"

namespace kvs::inline calibrate {

/// A method, and how prompts are put into its cache.
struct TaskCache {
  CacheChoice choice;
  std::string prefill;  // stepwise, context or prompt
};

/// Returns the parameters of a prefix of `tokens` tokens that is processed whole; 0: no prefix.
ParameterSource prefix_parameters(std::size_t tokens);
/// Refuses parameters of a prefix in --set, and a --prefill that the named method does not have.
/// @param beside  the option that prompts come from
void check_prefill(const Options& options, const std::string& beside);
/// Returns the cache that the options name, and how prompts are put into it. @throws Error as choose_cache()
TaskCache prompted_cache(const Options& options, const ModelSource& source);
/// Returns a function that creates the cache of a prompt of at most `longest` tokens. Caches that process tokens whole
/// differ in their prefix. `backend` and `model` must outlive the function.
std::function<Cache(const Prompt&)> prompt_cache_maker(const TaskCache& cache, Backend& backend,
                                                       const ModelConfig& model, std::size_t longest);

}  // namespace kvs::inline calibrate
