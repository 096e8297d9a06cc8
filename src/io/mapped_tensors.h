// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "io/file.h"
#include "io/tensor_archive.h"

namespace kvs::inline io {

/// The tensors of one or several mapped files. The archives of both formats use this class.
class MappedTensors {
 public:
  /// @param tensors  views into `file`
  void add(MappedFile file, std::vector<StoredTensor> tensors);
  /// Sorts the tensors in byte order of names. Call it after the last add().
  /// @throws Error kInput if two files hold a tensor of the same name.
  void finish();

  /// Call these after finish().
  std::span<const StoredTensor> tensors() const noexcept { return tensors_; }
  std::span<const MappedFile> files() const noexcept { return files_; }
  const std::filesystem::path& file_of(const StoredTensor& tensor) const noexcept;
  /// Like TensorArchive::check_unchanged() and release().
  void check_unchanged() const;
  void release(std::span<const std::byte> bytes) const noexcept;

 private:
  std::vector<MappedFile> files_;
  std::vector<std::pair<StoredTensor, std::size_t>> stored_;  // until finish(): each tensor with the index of its file
  std::vector<StoredTensor> tensors_;
  std::vector<std::size_t> file_of_;  // [tensor]
};

}  // namespace kvs::inline io
