#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "io/descriptor.h"

namespace kvs {

/// A tensor to write. Its values are asked for when they are written, some rows at a time and in order, so that a
/// model's tensors need not be in memory together.
struct OutputTensor {
  std::string name;
  DType type = DType::kF32;          // f32, bf16 or f16: what values are rounded to
  std::vector<std::uint64_t> shape;  // outermost axis first
  /// Rows [first, first + count) of the tensor seen as [rows, columns] into out (count · columns).
  std::function<void(std::size_t first, std::size_t count, std::span<float> out)> read;

  /// Product of all axes but the last (1 for rank 0 and 1), and the last axis. @throws Error kInternal if the whole
  /// does not fit in 63 bits.
  std::uint64_t rows() const;
  std::uint64_t columns() const;
  std::uint64_t bytes() const;
};

/// A tensor whose values are in memory. @throws Error kInternal for a shape that does not fit them.
OutputTensor held_tensor(std::string name, std::vector<std::uint64_t> shape, std::vector<float> values,
                         DType type = DType::kF32);

/// Appends to a file that exists and is empty, such as a StagedOutput's.
class OutputFile {
 public:
  /// @param progress  called with the bytes of tensors written since the last call; may throw
  explicit OutputFile(const std::filesystem::path& path, std::function<void(std::uint64_t)> progress = {});

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// NUL bytes up to a multiple of `alignment`.
  void pad(std::size_t alignment);
  /// The tensor's values, rounded to its type. Holds some MiB of them.
  /// @throws Error kData for one that is not finite, or not in the type's range (tensor, flat index)
  void write(const OutputTensor& tensor);

 private:
  std::filesystem::path path_;
  std::function<void(std::uint64_t)> progress_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace kvs
