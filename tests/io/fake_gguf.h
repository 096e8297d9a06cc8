#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "io/gguf.h"

namespace kvs {

/// A GGUF file that is only metadata, in memory. String views in it must outlive it.
class FakeGguf final : public GgufFile {
 public:
  std::map<std::string, GgufValue, std::less<>> values;

  const std::filesystem::path& path() const noexcept override { return path_; }
  const std::map<std::string, GgufValue, std::less<>>& metadata() const noexcept override { return values; }
  std::span<const StoredTensor> tensors() const noexcept override { return {}; }
  const std::filesystem::path& file_of(const StoredTensor&) const noexcept override { return path_; }
  void check_unchanged() const override {}

 private:
  std::filesystem::path path_ = "fake.gguf";
};

}  // namespace kvs
