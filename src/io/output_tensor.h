// SPDX-License-Identifier: Apache-2.0
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

namespace kvs::inline io {

/// A tensor to write. Its values are read only when they are written, some rows at a time and in order, so that a
/// model's tensors need not be in memory together.
struct OutputTensor {
  std::string name;
  DType type = DType::kF32;          // f32, bf16 or f16: values are rounded to it
  std::vector<std::uint64_t> shape;  // outermost axis first
  /// Reads rows [first, first + count) of the tensor, seen as [rows, columns], into `out` (count · columns values).
  std::function<void(std::size_t first, std::size_t count, std::span<float> out)> read;

  /// rows(): product of all axes but the last (1 for rank 0 and 1). columns(): the last axis. @throws Error kInternal
  /// if the size does not fit in 63 bits.
  std::uint64_t rows() const;
  std::uint64_t columns() const;
  std::uint64_t bytes() const;
};

/// Makes a tensor whose values are in memory. @throws Error kInternal if `shape` does not match the number of values.
OutputTensor held_tensor(std::string name, std::vector<std::uint64_t> shape, std::vector<float> values,
                         DType type = DType::kF32);

/// Appends to an existing empty file, such as a StagedOutput's file.
class OutputFile {
 public:
  /// @param progress  called with the bytes of tensors written since the last call; may throw
  explicit OutputFile(const std::filesystem::path& path, std::function<void(std::uint64_t)> progress = {});

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Writes NUL bytes up to a multiple of `alignment`.
  void pad(std::size_t alignment);
  /// Writes the tensor's values, rounded to its type. Holds some MiB of them in memory.
  /// @throws Error kData for a value that is not finite or not in the type's range (names tensor and flat index)
  void write(const OutputTensor& tensor);

 private:
  std::filesystem::path path_;
  std::function<void(std::uint64_t)> progress_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace kvs::inline io
