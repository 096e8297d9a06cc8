// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/head.h"

namespace kvs::inline results {

/// The result of `kvcalibrate generate`.
struct GenerationResult {
  std::string method;
  Json parameters;
  std::optional<std::int32_t> bos = {};
  std::vector<std::int32_t> prompt_ids = {}, ids = {};
  std::string text = {};
  std::size_t bytes_end = 0, bytes_allocated = 0, compressions = 0;
  std::optional<double> prefill_tokens_per_second = {},
                        decode_tokens_per_second = {};  // null if the measured time is 0
  std::string dtype = {};
  ModelRecord model = {};
  std::string command = {}, tool_version = {};
  std::optional<std::size_t> shared_bytes = {};
  InputDigests inputs = {};

  static void fields(auto& result, auto&& field) {
    field("method", result.method)("parameters", result.parameters)("bos", result.bos)("prompt_ids", result.prompt_ids)(
        "ids", result.ids)("text", result.text)("bytes_end", result.bytes_end)(
        "bytes_allocated", result.bytes_allocated)("compressions", result.compressions)(
        "prefill_tokens_per_second", result.prefill_tokens_per_second)(
        "decode_tokens_per_second", result.decode_tokens_per_second)("dtype", result.dtype)("model", result.model)(
        "command", result.command)("tool_version", result.tool_version);
    field.absent_or("shared_bytes", result.shared_bytes);
    field.inlined(result.inputs);
  }
};

/// Describes the cache in one line, without the generated text.
std::string to_text(const GenerationResult& result);

}  // namespace kvs::inline results
