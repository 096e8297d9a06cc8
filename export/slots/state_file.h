// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace kvs::inline exporting {

// The files of llama.cpp's llama_state_seq_save_file(), which llama-server writes with --slot-save-path: the tokens of
// a sequence and its KV cache. Layout: llama.cpp, src/llama-context.cpp and src/llama-kv-cache.cpp, as in
// llama-cpp-python 0.3.36. All numbers are little-endian.

/// LLAMA_STATE_SEQ_VERSION of the files that are read and written.
inline constexpr std::uint32_t kStateVersion = 3;

/// Largest number of streams, as in llama.cpp (LLAMA_MAX_SEQ).
inline constexpr std::uint32_t kMaxStreams = 256;

/// Keys or values of the cells of a layer.
struct StateRows {
  DType type = DType::kF16;               // f32, f16 or bf16
  std::size_t values = 0;                 // of a cell: kv_heads · head_dim
  std::span<const std::byte> bytes = {};  // [cell, value]; values of a transposed cache: [value, cell]
};

struct StateLayer {
  StateRows keys, values;
};

/// A KV cache of a sequence: of all layers, or of those with or without a window.
struct StateCache {
  std::uint32_t streams = 1, stream = 0;  // number of streams of the file, and the one that has the cells
  std::int32_t sequence = 0;
  bool transposed = false;              // values are [value, cell]: llama.cpp without flash attention
  std::vector<std::int32_t> positions;  // [cell]
  std::vector<StateLayer> layers;
};

struct StateFile {
  std::vector<std::int32_t> tokens;
  std::vector<StateCache> caches;
};

/// Reads a file. The rows are views of `file`. A model with a window in some layers has two caches: that of its other
/// layers comes first.
/// @param where  the file, for messages
/// @throws Error kInput for a damaged file or one of another kind; kUnsupported for another version, quantised rows,
///         several sequences and recurrent states
StateFile parse_state(std::span<const std::byte> file, std::string_view where);

/// Writes a file, as llama.cpp does. @param file  missing or empty
void write_state(const std::filesystem::path& file, const StateFile& state);

}  // namespace kvs::inline exporting
