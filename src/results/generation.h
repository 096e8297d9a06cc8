#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/head.h"

namespace kvs {

/// The result of `kvcalibrate generate`.
struct GenerationResult {
  std::string method;
  Json parameters;
  std::optional<std::int32_t> bos = {};
  std::vector<std::int32_t> prompt_ids, ids;
  std::string text;
  std::size_t bytes_end = 0, bytes_allocated = 0, compressions = 0;
  std::optional<double> prefill_tokens_per_second, decode_tokens_per_second;  // null if the clock stood still
  std::string dtype;
  ModelRecord model;
  std::string command, tool_version;
  std::optional<std::size_t> shared_bytes = {};
  InputDigests inputs = {};

  static void fields(auto& result, auto&& field) {
    field("method", result.method);
    field("parameters", result.parameters);
    field("bos", result.bos);
    field("prompt_ids", result.prompt_ids);
    field("ids", result.ids);
    field("text", result.text);
    field("bytes_end", result.bytes_end);
    field("bytes_allocated", result.bytes_allocated);
    field("compressions", result.compressions);
    field("prefill_tokens_per_second", result.prefill_tokens_per_second);
    field("decode_tokens_per_second", result.decode_tokens_per_second);
    field("dtype", result.dtype);
    field("model", result.model);
    field("command", result.command);
    field("tool_version", result.tool_version);
    field.absent_or("shared_bytes", result.shared_bytes);
    field.inlined(result.inputs);
  }
};

}  // namespace kvs
