// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/element_type.h"
#include "io/gguf.h"

namespace kvs {

/// A GGUF file in memory: metadata, and vectors of f32 in byte order of names. String views in it must outlive it.
class FakeGguf final : public GgufFile {
 public:
  std::map<std::string, GgufValue, std::less<>> values;

  const std::filesystem::path& path() const noexcept override { return path_; }
  const std::map<std::string, GgufValue, std::less<>>& metadata() const noexcept override { return values; }
  const GgufEncoded& encoded() const noexcept override { return encoded_; }
  std::span<const StoredTensor> tensors() const noexcept override { return tensors_; }
  void add_tensor(const std::string& name, std::vector<float> numbers) {
    const std::vector<float>& kept = data_.emplace_back(std::move(numbers));
    StoredTensor tensor{
        .name = name, .type = element_type_of_ggml(0), .type_name = "F32", .shape = {kept.size()}, .bytes = {}};
    tensor.bytes = std::as_bytes(std::span(kept));
    tensors_.insert(std::ranges::lower_bound(tensors_, name, {}, &StoredTensor::name), std::move(tensor));
  }
  const std::filesystem::path& file_of(const StoredTensor&) const noexcept override { return path_; }
  void check_unchanged() const override {}

 private:
  std::filesystem::path path_ = "fake.gguf";
  GgufEncoded encoded_;
  std::deque<std::vector<float>> data_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace kvs
