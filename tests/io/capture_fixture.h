// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/hdf5/capture_file.h"
#include "tests/io/temporary_directory.h"

namespace kvs::test {

/// Two layers of a small model with grouped heads.
inline CaptureHeader small_header(DType store = DType::kF32, std::uint64_t documents = 3) {
  CaptureHeader header;
  header.model_name = "tiny \u00e9";
  header.model_sha256 = std::string(64, 'a');
  header.architecture = "llama";
  header.layers = {0, 13};
  header.model_layers = 32;
  header.query_heads = 4;
  header.kv_heads = 2;
  header.head_dim = 6;
  header.rope_theta = 1e5;
  header.rope_scaling = R"({"type":"linear","factor":2.0})";
  header.rope_parameters = R"([{"theta":100000.0,"rotary_dim":6,"scaling":{"rope_type":"linear","factor":2.0}}])";
  header.rotary_dim = 6;
  header.rope_kinds.assign(header.model_layers, 0);
  header.rope_factors = {1};
  header.rope_frequencies = {0.5, 0.1, 1.0 / 3.0};
  header.store = store;
  header.states = {StateKind::kQPre, StateKind::kKPre, StateKind::kV};
  header.tokens = 17;
  header.documents = documents;
  return header;
}

/// Layers with heads of two sizes and a RoPE of their own, and layers without a KV cache.
inline CaptureHeader mixed_header(DType store = DType::kF32, std::uint64_t documents = 3) {
  CaptureHeader header = small_header(store, documents);
  header.model_layers = 4;
  header.layers = {1, 3};
  header.layers_without_cache = {0, 2};
  header.kv_heads = LayerSizes({0, 2, 0, 1});
  header.head_dim = LayerSizes({0, 6, 0, 8});
  header.rotary_dim = LayerSizes({8, 6});
  header.rope_kinds = {0, 1, 0, 0};
  header.rope_factors = {1, 1};
  header.rope_frequencies = {0.5, 0.1, 0, 0, 0.5, 0.1, 1.0 / 3.0};
  return header;
}

/// Element `i` of some states: a multiple of 1/8 below 16, which f32, f16 and bf16 hold exactly.
inline float state_value(std::uint64_t document, std::int32_t layer, StateKind kind, std::size_t i) {
  const std::uint64_t mixed =
      document * 101 + static_cast<std::uint64_t>(layer) * 31 + static_cast<std::uint64_t>(kind) * 7 + i * 13;
  return (static_cast<float>(mixed % 255) - 127.0F) / 8.0F;
}
inline std::vector<float> states_of(const CaptureHeader& header, std::uint64_t document, std::int32_t layer,
                                    StateKind kind) {
  const auto [heads, tokens, head_dim] = header.shape_of(static_cast<std::size_t>(layer), kind);
  std::vector<float> values(heads * tokens * head_dim);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = state_value(document, layer, kind, i);
  return values;
}
inline std::vector<std::int32_t> tokens_of(const CaptureHeader& header, std::uint64_t document) {
  std::vector<std::int32_t> tokens(header.tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(document * 1000 + i);
  return tokens;
}
inline std::vector<float> nll_of(const CaptureHeader& header, std::uint64_t document) {
  std::vector<float> nll(header.tokens - 1);
  for (std::size_t i = 0; i < nll.size(); ++i) nll[i] = static_cast<float>(document) + static_cast<float>(i) / 3.0F;
  return nll;
}

inline std::array<std::size_t, 3> shape_of(const CaptureHeader& header, StateKind kind, std::size_t layer = 0) {
  return header.shape_of(layer, kind);
}

inline void write_document(CaptureWriter& writer, const CaptureHeader& header, std::uint64_t document) {
  writer.begin_document(tokens_of(header, document));
  for (const std::int32_t layer : header.layers)
    for (const StateKind kind : header.states) {
      const std::vector<float> values = states_of(header, document, layer, kind);
      writer.write_states(layer, kind, {values, shape_of(header, kind, static_cast<std::size_t>(layer))});
    }
  writer.write_nll(nll_of(header, document));
  writer.commit_document();
}

inline const Json& test_identity() {
  static const Json identity{{"tool_version", "1"}, {"window", 17}};
  return identity;
}

/// Runs a capture from its present state to its end.
inline void run_capture(const std::filesystem::path& path, const CaptureHeader& header,
                        CaptureWriter::Options options = {}) {
  const auto writer = CaptureWriter::open(path, header, test_identity(), options);
  while (writer->next_document() < header.documents) write_document(*writer, header, writer->next_document());
  writer->finish();
}

/// Leaves an unfinished capture with `committed` documents.
inline void run_part(const std::filesystem::path& path, const CaptureHeader& header, std::uint64_t committed,
                     CaptureWriter::Options options = {}) {
  const auto writer = CaptureWriter::open(path, header, test_identity(), options);
  while (writer->next_document() < committed) write_document(*writer, header, writer->next_document());
}

inline void flip_bit(const std::filesystem::path& path, std::uint64_t offset, int bit = 0) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ (1 << bit)));
}

}  // namespace kvs::test
