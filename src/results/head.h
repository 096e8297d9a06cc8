// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/json_fields.h"
#include "io/layer_sizes.h"

namespace kvs::inline results {

/// The model that a result or a config was made with.
struct ModelRecord {
  struct Rope {
    double theta = 0;
    Json scaling = {};  // rope_scaling_json()
    std::string pairing = "rotate-half";
    std::size_t rotary_dim = 0;
    std::optional<Json> kinds = {};                     // ropes_json(), if layers use different RoPE settings
    std::uint64_t window = 0;                           // tokens of one document
    std::vector<std::vector<double>> frequencies = {};  // [kind][chunk] for documents of `window` tokens
    std::vector<double> factors = {};                   // [kind]
    std::vector<std::size_t> layer_kinds = {};          // [layer]

    static void fields(auto& rope, auto&& field) {
      field("theta", rope.theta)("scaling", rope.scaling)("pairing", rope.pairing)("rotary_dim", rope.rotary_dim);
      field.absent_or("kinds", rope.kinds);
      field("window", rope.window)("frequencies", rope.frequencies)("factors", rope.factors)("layer_kinds",
                                                                                             rope.layer_kinds);
    }
  };
  std::string name = {}, sha256 = {}, architecture = {};
  std::size_t layers = 0;
  LayerSizes query_heads = {}, kv_heads = {}, head_dim = {};          // of the layers with a KV cache
  std::optional<std::vector<std::size_t>> layers_without_cache = {};  // absent: every layer has a KV cache
  std::optional<std::vector<std::size_t>> one_row_layers = {};  // whose keys and values come from one row; absent: none
  std::optional<std::size_t> recurrent_bytes = {};  // of a sequence's recurrent states, in f32; absent: none
  Rope rope = {};

  static void fields(auto& model, auto&& field) {
    field("name", model.name)("sha256", model.sha256)("architecture", model.architecture)("layers", model.layers)(
        "query_heads", model.query_heads)("kv_heads", model.kv_heads)("head_dim", model.head_dim);
    field.absent_or("layers_without_cache", model.layers_without_cache);
    field.absent_or("one_row_layers", model.one_row_layers);
    field.absent_or("recurrent_bytes", model.recurrent_bytes);
    field("rope", model.rope);
  }
  bool has_cache(std::size_t layer) const {
    return !layers_without_cache || std::ranges::find(*layers_without_cache, layer) == layers_without_cache->end();
  }
  /// Values of a layer's full cache per token.
  std::size_t cache_values(std::size_t layer) const;
  /// Checks the sizes that a report multiplies.
  static void check(const ModelRecord& model, const JsonCursor& json);
};

/// The token id at the start of every document, or null if there is none. Empty if no text was read.
using BosRecord = std::optional<std::optional<std::int32_t>>;
/// Returns the record of documents that begin with `bos`; -1: with no such token.
inline BosRecord bos_record(std::int32_t bos) { return bos < 0 ? std::optional<std::int32_t>() : bos; }

/// SHA-256 digests of the other inputs of a run. `config_sha256` is a list if there are several configs.
struct InputDigests {
  std::optional<Json> config_sha256 = {}, config_model_sha256 = {}, costs_sha256 = {}, costs_model_sha256 = {};
  std::optional<std::string> tokenizer_sha256 = {};

  static void fields(auto& inputs, auto&& field) {
    field.absent_or("config_sha256", inputs.config_sha256);
    field.absent_or("config_model_sha256", inputs.config_model_sha256);
    field.absent_or("costs_sha256", inputs.costs_sha256);
    field.absent_or("costs_model_sha256", inputs.costs_model_sha256);
    field.absent_or("tokenizer_sha256", inputs.tokenizer_sha256);
  }
};

/// The first members of most results (`inlined`). Results with another order list the members individually.
struct ResultHead {
  std::string format = {};  // "kvspectrum-retention"
  std::int64_t version = 1;
  ModelRecord model = {};
  std::string command = {}, tool_version = {};
  std::vector<std::string> text_sha256 = {};  // one for each text file
  BosRecord bos = {};

  static void fields(auto& head, auto&& field) {
    field("format", head.format)("version", head.version)("model", head.model)("command", head.command)(
        "tool_version", head.tool_version)("text_sha256", head.text_sha256);
    field.absent_or("bos", head.bos);
  }
};

}  // namespace kvs::inline results
