// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace kvs::test {

/// A tokenizer whose tokens are four bytes, fewer at the end of a text; ids are assigned in order of appearance.
class PieceTokenizer : public Tokenizer {
 public:
  explicit PieceTokenizer(std::size_t bytes) noexcept : bytes_(bytes) {}
  std::vector<std::int32_t> encode_turns(std::string_view text, std::span<const TextRange>) const override {
    std::vector<std::int32_t> ids;
    for (std::size_t n = 0; n < text.size(); n += bytes_) {
      const auto id = static_cast<std::int32_t>(pieces_.size());
      const auto [piece, is_new] = ids_.emplace(text.substr(n, bytes_), id);
      if (is_new) pieces_.push_back(piece->first);
      ids.push_back(piece->second);
    }
    return ids;
  }
  std::string decode(const std::vector<std::int32_t>& ids) const override {
    std::string text;
    for (const std::int32_t id : ids) text += pieces_.at(static_cast<std::size_t>(id));
    return text;
  }
  std::size_t vocabulary_size() const noexcept override { return pieces_.size(); }
  std::int32_t bos() const noexcept override { return -1; }
  bool adds_bos() const noexcept override { return false; }
  std::int32_t find(std::string_view) const noexcept override { return -1; }

 private:
  std::size_t bytes_;
  mutable std::map<std::string, std::int32_t, std::less<>> ids_;
  mutable std::vector<std::string> pieces_;
};

class FourByteTokenizer final : public PieceTokenizer {
 public:
  FourByteTokenizer() noexcept : PieceTokenizer(4) {}
};

}  // namespace kvs::test
