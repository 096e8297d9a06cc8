// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvs::testing {

/// A Llama in one GGUF file of f32, in parts that a test may change one by one: 2 layers, 4 query and 2 KV heads of 8
/// channels, d_ff 32, and a SentencePiece-like vocabulary of 264 tokens: <unk>, <s>, </s>, the 256 bytes, then a, b, c,
/// U+2581 (a space) and ab.
struct TinyGguf {
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> lengths;  // innermost first
    std::uint32_t type;
    std::string bytes;
  };

  explicit TinyGguf(std::uint64_t d_model = 32);

  /// Returns the file, with each tensor directly after the one before.
  std::string bytes() const;
  /// The model's entry is a test::gguf_file::key.
  void set_key(std::string_view name, std::uint32_t type, std::string_view value);
  void erase_key(std::string_view name);
  Tensor& tensor(std::string_view name);

  std::vector<std::pair<std::string, std::string>> keys;  // name and entry
  std::vector<Tensor> tensors;
};

/// An array of strings as a value.
std::string array_of_texts(const std::vector<std::string>& texts);
/// The vocabulary above.
std::vector<std::string> tiny_vocabulary();

}  // namespace kvs::testing
