// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "export/engines/engines.h"

namespace kvs::inline engines {
namespace {

constexpr std::array<std::string_view, 2> kTensorRtTypes{"fp8", "nvfp4"};

std::string obstacle_of_tensorrt_llm(const EngineCache& cache) { return only_types(cache, kTensorRtTypes); }

EngineUse use_in_tensorrt_llm(const EngineCache& cache) {
  const std::string type = type_of_all(cache);
  if (type == "none") return {};
  return {.flags = "--kv_cache_dtype " + type,
          .notes = {"TensorRT-LLM reads the scales of the checkpoint, else uses 1"}};
}

}  // namespace

const Engine kTensorRtLlm{.name = "tensorrt-llm",
                          .version = "2026-09",
                          .summary = "the full cache in fp8 or nvfp4",
                          .types = kTensorRtTypes,
                          .obstacle = obstacle_of_tensorrt_llm,
                          .use = use_in_tensorrt_llm};

}  // namespace kvs::inline engines
