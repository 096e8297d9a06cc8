// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace kvs {

/// One id per byte, so that every expected value can be read from the text. 256 begins a sequence.
class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr std::size_t kVocabulary = 257;
  static constexpr std::int32_t kBos = 256;
  std::vector<std::int32_t> encode_turns(std::string_view text, std::span<const TextRange>) const override {
    std::vector<std::int32_t> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  std::string decode(const std::vector<std::int32_t>& ids) const override {
    std::string text;
    for (const std::int32_t id : ids) text.push_back(static_cast<char>(id));
    return text;
  }
  std::size_t vocabulary_size() const noexcept override { return kVocabulary; }
  std::int32_t bos() const noexcept override { return kBos; }
  bool adds_bos() const noexcept override { return true; }
  std::int32_t find(std::string_view) const noexcept override { return -1; }
};

}  // namespace kvs
