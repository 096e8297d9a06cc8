#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvs {

/// What is read of a tokenizer.model (the message ModelProto of SentencePiece's sentencepiece_model.proto).
struct SentencePieceModel {
  enum class PieceType { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  struct Piece {
    std::string text;
    PieceType type = PieceType::kNormal;
  };
  std::vector<Piece> pieces;  // by id
};

/// Reads and checks a tokenizer.model before libsentencepiece sees it: that library trusts the model, above all the
/// normalizer's automaton, whose offsets it follows without a look at their size.
/// @throws Error kInput on anything malformed, with the byte offset or the piece; kUnsupported for models other than
///         BPE and Unigram.
/// Cost O(size), and 256 steps per state of the automaton.
SentencePieceModel check_sentencepiece_model(std::string_view bytes, std::string_view where);

}  // namespace kvs
