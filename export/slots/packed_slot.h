// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace kvs::inline exporting {

/// A layer of a packed cache.
struct PackedLayer {
  std::size_t layer = 0;  // of the model
  std::string type;       // f32, f16 or bf16

  static void fields(auto& layer, auto&& field) { field("layer", layer.layer)("type", layer.type); }
};

/// A cache of StateFile whose cells hold the tokens of consecutive positions.
struct PackedCache {
  std::uint32_t streams = 1, stream = 0;
  std::int32_t sequence = 0;
  bool transposed = false;
  std::uint32_t first_position = 0, tokens = 0;
  std::vector<PackedLayer> layers;

  static void fields(auto& cache, auto&& field) {
    field("streams", cache.streams)("stream", cache.stream)("sequence", cache.sequence)("transposed", cache.transposed);
    field("first_position", cache.first_position)("tokens", cache.tokens)("layers", cache.layers);
  }
};

/// What a packed slot states of itself.
struct PackedHead {
  static constexpr const char* kFormat = "kvspectrum-slot/1";
  std::string format = kFormat;
  std::uint32_t state_version = 0;  // of StateFile
  std::string tensors_sha256;       // of the config's tensors
  std::string model_sha256;
  std::vector<PackedCache> caches;
  std::map<std::string, std::uint32_t> crc32c = {};  // of the other tensors; set by write_packed()

  static void fields(auto& head, auto&& field) {
    field("format", head.format)("state_version", head.state_version)("tensors_sha256", head.tensors_sha256);
    field("model_sha256", head.model_sha256)("caches", head.caches)("crc32c", head.crc32c);
  }
};

/// A part of a packed slot: a stream of bytes, or values of a type.
struct PackedPart {
  std::string type = "U8";  // safetensors' name
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> bytes;
};

/// A packed slot is a safetensors file with these tensors:
///
///   head               JSON of PackedHead
///   checksum           of the head: CRC-32C, I32
///   tokens             [token], I32
///   stream.L           the stream of the layers that share rows, of which L is the first (docs/codec.md)
///   keys.L, values.L   [token, value], the newest tokens, which are not coded; all tokens of a layer that the config
///                      does not code. Keys are rotated, in rotate-half order.
struct PackedSlot {
  PackedHead head;
  std::vector<std::int32_t> tokens;
  std::map<std::string, PackedPart> parts;
};

/// @param file  missing or empty
void write_packed(const std::filesystem::path& file, const PackedSlot& slot);
/// Reads all of a packed slot; does not decode it.
/// @throws Error kInput, also for a tensor with another checksum; kUnsupported for another version
PackedSlot read_packed(const std::filesystem::path& file);

}  // namespace kvs::inline exporting
