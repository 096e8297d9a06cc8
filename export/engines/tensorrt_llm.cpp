#include "export/engines/engines.h"

namespace kvs::inline engines {
namespace {

EngineUse use_in_tensorrt_llm(const EngineCache& cache) {
  if (!has_fp8(cache)) return {};
  return {.flags = "--kv_cache_dtype fp8", .notes = {"TensorRT-LLM reads the scales of the checkpoint, else uses 1"}};
}

}  // namespace

const Engine kTensorRtLlm{.name = "tensorrt-llm",
                          .version = "2026-09",
                          .summary = "the full cache in fp8",
                          .types = kFp8Types,
                          .obstacle = only_fp8,
                          .use = use_in_tensorrt_llm};

}  // namespace kvs::inline engines
