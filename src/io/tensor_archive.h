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

namespace kvs {

/// One named tensor of a model on disk, as stored. Views into memory that its TensorArchive keeps.
struct StoredTensor {
  std::string name;                   // as in the file; opaque, never a path
  const ElementType* type = nullptr;  // how the bytes decode; nullptr if this version cannot decode it
  std::string type_name;              // the file's own name of it, e.g. "BF16", "Q4_1"
  std::vector<std::uint64_t> shape;   // outermost axis first, whatever the file's order; product and size were checked
  std::span<const std::byte> bytes;

  /// Product of all axes but the last (1 for rank 0 and 1), and the last axis.
  std::uint64_t rows() const noexcept;
  std::uint64_t columns() const noexcept;
};

/// The tensors of one model: a safetensors file, a sharded set of them, a GGUF file or the parts of a split one.
class TensorArchive {
 public:
  virtual ~TensorArchive() = default;

  /// All tensors in byte order of names.
  virtual std::span<const StoredTensor> tensors() const noexcept = 0;
  /// The file that holds `tensor`, for messages.
  virtual const std::filesystem::path& file_of(const StoredTensor& tensor) const noexcept = 0;
  /// @throws Error kInput if a file was changed since it was opened.
  virtual void check_unchanged() const = 0;
  /// Says that these bytes of a tensor are not needed for now, so that memory need not hold them twice; they can still
  /// be read. Costs nothing but the time to read them again.
  virtual void release(std::span<const std::byte>) const noexcept {}
  /// Harmless oddities that were found when opening, one line each, for the program to show.
  virtual std::span<const std::string> warnings() const noexcept { return {}; }

  const StoredTensor* find(std::string_view name) const noexcept;
};

/// Rows [first, first + count) of `tensor` seen as [rows, columns], widened or dequantised to f32.
/// out: count · columns values. Thread-safe.
/// @throws Error kUnsupported if the type cannot be decoded, kInternal on a bad range.
void read_rows(const StoredTensor& tensor, std::uint64_t first, std::uint64_t count, std::span<float> out);

/// SHA-256 over the named tensors as they are stored, 64 lower-case hexadecimal digits. The order and repetition of
/// `names` do not matter. The hashed bytes are, for each tensor in byte order of names, with every integer a
/// little-endian u64:
///   length of the name, the name, length of type_name, type_name,
///   number of axes, each axis's length (outermost first), number of data bytes, the data bytes.
/// @throws Error kInput if a name is not in the archive.  Cost: reads every byte once; memory holds a few MiB of them.
std::string model_digest(const TensorArchive& archive, std::span<const std::string> names);

/// Opens one *.safetensors file, or the shards of a model.safetensors.index.json (any path that ends in ".json").
/// Every file is mapped and its header checked whole; the bytes of tensors are not touched.
/// Format: the safetensors project's README.md; stricter than its crate in that duplicate names are refused. Where the
/// index puts tensors into other shards than hold them, a warning says so.
/// @throws Error kInput on anything malformed, missing or inconsistent; kUnsupported for a pickle or a zip.
std::unique_ptr<TensorArchive> open_safetensors(const std::filesystem::path& path);

}  // namespace kvs
