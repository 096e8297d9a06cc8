// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/element_type.h"

namespace kvs::inline io {

/// One named tensor of a model on disk, as stored: a view into memory that its TensorArchive keeps.
struct StoredTensor {
  std::string name;                   // name in the file; opaque, never a path
  const ElementType* type = nullptr;  // how the bytes decode; nullptr if this version cannot decode them
  std::string type_name;              // the file format's name of the type, e.g. "BF16", "Q4_1"
  std::vector<std::uint64_t> shape;   // outermost axis first, whatever the file's order; product and size were checked
  std::span<const std::byte> bytes;

  /// rows(): product of all axes but the last (1 for rank 0 and 1). columns(): the last axis.
  std::uint64_t rows() const noexcept;
  std::uint64_t columns() const noexcept;
};

/// The tensors of one model: a safetensors file or its shards, a GGUF file or the parts of a split one.
class TensorArchive {
 public:
  virtual ~TensorArchive() = default;

  /// Returns all tensors in byte order of names.
  virtual std::span<const StoredTensor> tensors() const noexcept = 0;
  /// Returns the file that holds `tensor`, for messages.
  virtual const std::filesystem::path& file_of(const StoredTensor& tensor) const noexcept = 0;
  /// @throws Error kInput if a file has changed since it was opened.
  virtual void check_unchanged() const = 0;
  /// States that these bytes of a tensor are not needed for now, so that memory need not hold them twice. They can
  /// still be read; the only cost is the time to read them again.
  virtual void release(std::span<const std::byte>) const noexcept {}
  /// Returns harmless oddities found when opening, one line each, for the program to show.
  virtual std::span<const std::string> warnings() const noexcept { return {}; }

  const StoredTensor* find(std::string_view name) const noexcept;
};

/// Reads rows [first, first + count) of `tensor`, seen as [rows, columns], and widens or dequantises them to f32. `out`
/// holds count · columns values. Thread-safe.
/// @throws Error kUnsupported if the type cannot be decoded, kInternal on a bad range.
void read_rows(const StoredTensor& tensor, std::uint64_t first, std::uint64_t count, std::span<float> out);

/// Returns the SHA-256 over the named tensors as stored, in 64 lower-case hexadecimal digits. The order and repetition
/// of `names` do not matter. The hash covers, for each tensor in byte order of names, with every integer as a
/// little-endian u64:
///   length of the name, the name, length of type_name, type_name,
///   number of axes, each axis's length (outermost first), number of data bytes, the data bytes.
/// @throws Error kInput if a name is not in the archive.  Cost: reads every byte once, with a few MiB in memory.
std::string model_digest(const TensorArchive& archive, std::span<const std::string> names);

/// Opens one *.safetensors file, or the shards of a model.safetensors.index.json (any path that ends in ".json"). Maps
/// every file and checks its whole header; does not touch the tensors' bytes. Format: the safetensors project's
/// README.md. Stricter than its crate: duplicate names are refused. A warning reports tensors that are in other shards
/// than the index states.
/// @throws Error kInput on anything malformed, missing or inconsistent; kUnsupported for a pickle or a zip.
std::unique_ptr<TensorArchive> open_safetensors(const std::filesystem::path& path);

}  // namespace kvs::inline io
