// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace kvs::inline tokenizer {

/// Converts the words of a text to ids, one word at a time. Thread-safe after construction.
class WordModel {
 public:
  /// One thread's working memory. It must not outlive the model.
  class Encoder {
   public:
    virtual ~Encoder() = default;
    /// Appends the ids of `word` (not empty, valid UTF-8). A word always gives the same ids.
    virtual void encode(std::string_view word, std::vector<std::int32_t>& ids) = 0;
  };

  virtual ~WordModel() = default;
  virtual std::unique_ptr<Encoder> make_encoder() const = 0;
};

}  // namespace kvs::inline tokenizer
