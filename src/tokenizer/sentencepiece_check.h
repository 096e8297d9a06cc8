// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvs::inline tokenizer {

/// The fields read from a tokenizer.model (message ModelProto of SentencePiece's sentencepiece_model.proto).
struct SentencePieceModel {
  enum class PieceType { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  struct Piece {
    std::string text;
    PieceType type = PieceType::kNormal;
  };
  std::vector<Piece> pieces;  // by id
};

/// Reads and checks a tokenizer.model before libsentencepiece reads it. That library trusts the model, in particular
/// the normalizer's automaton, whose offsets it follows without bounds checks.
/// @throws Error kInput on malformed data, with the byte offset or the piece; kUnsupported for other models than BPE
/// and Unigram.
/// Cost O(size), and 256 steps per state of the automaton.
SentencePieceModel check_sentencepiece_model(std::string_view bytes, std::string_view where);

}  // namespace kvs::inline tokenizer
