#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "calibrate/cache_choice.h"
#include "tasks/prompt.h"

namespace kvs {

/// A method, and how questions go into its cache.
struct TaskCache {
  CacheChoice choice;
  std::string prefill;  // stepwise, context or prompt
};

/// The parameters of a prefix of `tokens` tokens that goes in whole; 0: none does.
ParameterSource prefix_parameters(std::size_t tokens);
/// The caches of prompts of at most `longest` tokens: where tokens go in whole they differ in their prefix. `backend`
/// and `model` must outlive it.
std::function<Cache(const Prompt&)> prompt_cache_maker(const TaskCache& cache, Backend& backend,
                                                       const ModelConfig& model, std::size_t longest);

}  // namespace kvs
