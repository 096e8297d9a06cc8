// SPDX-License-Identifier: Apache-2.0
#include "io/mapped_tensors.h"

#include <algorithm>

#include "core/error.h"

namespace kvs::inline io {

void MappedTensors::add(MappedFile file, std::vector<StoredTensor> tensors) {
  for (StoredTensor& tensor : tensors) stored_.emplace_back(std::move(tensor), files_.size());
  files_.push_back(std::move(file));
}

void MappedTensors::finish() {
  std::ranges::stable_sort(stored_, {}, [](const auto& stored) -> const std::string& { return stored.first.name; });
  for (auto& [tensor, file] : stored_) {
    if (!tensors_.empty() && tensors_.back().name == tensor.name)
      throw Error(ErrorCode::kInput, files_[file].path().native(),
                  "tensor \"" + printable(tensor.name, 80) + "\" is also in " +
                      files_[file_of_.back()].path().filename().native());
    tensors_.push_back(std::move(tensor));
    file_of_.push_back(file);
  }
  stored_.clear();
}

const std::filesystem::path& MappedTensors::file_of(const StoredTensor& tensor) const noexcept {
  return files_[file_of_[static_cast<std::size_t>(&tensor - tensors_.data())]].path();
}

void MappedTensors::check_unchanged() const {
  for (const MappedFile& file : files_) file.check_unchanged();
}

void MappedTensors::release(std::span<const std::byte> bytes) const noexcept {
  for (const MappedFile& file : files_) file.release(bytes);
}

}  // namespace kvs::inline io
