// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/bpe.h"
#include "tokenizer/word_model.h"

namespace kvs::inline tokenizer {

/// Finds the segmentation with the highest total score (Kudo, ACL 2018, section 3.2), with the conventions of
/// `tokenizers`. An unknown character scores the lowest score minus 10. Among equal paths, the one found first is kept.
/// A run of unknown characters is one token; among pieces with equal texts, the last one is used.
class Unigram final : public WordModel {
 public:
  struct Piece {
    std::string text;  // not empty, valid UTF-8
    double score = 0;  // finite
  };
  static constexpr std::int32_t kNoId = -1;
  /// The token of unknown text. Without it, a text that needs it is an error of `where`.
  struct Unknown {
    std::int32_t id = kNoId;
    std::string where = {};
  };

  /// @param pieces  by id
  /// @param byte_fallback  unknown text becomes the tokens "<0x00>" ... of its bytes, if all of these exist
  Unigram(const std::vector<Piece>& pieces, Unknown unknown, bool byte_fallback);

  /// Cost O(n) times the length of the longest piece.
  std::unique_ptr<Encoder> make_encoder() const override;

 private:
  class WordEncoder;

  std::uint32_t step(std::uint32_t node, char byte) const;
  void append(std::string_view piece, std::vector<std::int32_t>& ids) const;
  /// @throws Error kInput if there is no unknown token. `tokenizers` requires one even if byte fallback applies.
  void check_unknown(std::string_view character) const;

  static constexpr std::uint32_t kNoNode = 0xFFFFFFFFU;
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;  // (node << 8 | byte) -> node; node 0 is the root
  std::vector<std::int32_t> id_of_node_ = {kNoId};
  std::vector<double> scores_;  // by id
  StringMap<std::int32_t> ids_;
  std::vector<std::int32_t> byte_ids_;  // 256 ids, or none
  Unknown unknown_;
  double unknown_score_;
};

}  // namespace kvs::inline tokenizer
