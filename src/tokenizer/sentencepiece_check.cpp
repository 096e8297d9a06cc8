// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/sentencepiece_check.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "core/error.h"
#include "core/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace kvs::inline tokenizer {
namespace {

/// One field of a protobuf message. Format: protobuf.dev, "Encoding".
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of a varint, or of 4 or 8 bytes
  std::string_view bytes;   // of a length-delimited field
  bool has_bytes = false;
};

class FieldReader {
 public:
  /// @param offset  of `message` in the file
  FieldReader(std::string_view message, std::size_t offset, std::string_view where)
      : message_(message), offset_(offset), where_(where) {}

  std::optional<Field> next() {
    if (at_ == message_.size()) return std::nullopt;
    const std::uint64_t tag = varint();
    Field field;
    field.number = tag >> 3;
    switch (tag & 7U) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = fixed(8);
        break;
      case 2: {
        const std::uint64_t length = varint();
        if (length > message_.size() - at_)
          fail("a field of " + std::to_string(length) + " bytes, expected at most " +
               std::to_string(message_.size() - at_));
        field.bytes = message_.substr(at_, length);
        field.has_bytes = true;
        at_ += length;
        break;
      }
      case 5:
        field.value = fixed(4);
        break;
      default:
        fail("wire type " + std::to_string(tag & 7U) + ", expected 0, 1, 2 or 5");
    }
    return field;
  }

  /// Returns the offset in the file of the bytes of the last field read.
  std::size_t offset_of(const Field& field) const {
    return offset_ + static_cast<std::size_t>(field.bytes.data() - message_.data());
  }

 private:
  [[noreturn]] void fail(const std::string& found) const {
    throw Error(ErrorCode::kInput, std::string(where_) + ": byte " + std::to_string(offset_ + at_), "found " + found);
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == message_.size()) fail("the end, expected more of a number");
      const auto byte = static_cast<unsigned char>(message_[at_++]);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    fail("a number of more than 64 bits");
  }

  std::uint64_t fixed(std::size_t size) {
    if (size > message_.size() - at_) fail("the end, expected " + std::to_string(size) + " bytes");
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(message_[at_ + i])} << (8 * i);
    }
    at_ += size;
    return value;
  }

  std::string_view message_;
  std::size_t offset_;
  std::string_view where_;
  std::size_t at_ = 0;
};

/// The automaton of NormalizerSpec.precompiled_charsmap: the byte length of a Darts-clone double array (u32), the
/// array, and the NUL-terminated texts that replace its keys.
class CharsMap {
 public:
  static constexpr std::size_t kMaxUnits = 1UL << 22;

  CharsMap(std::string_view bytes, std::string_view where) : where_(where) {
    constexpr std::size_t kHeader = 4;
    if (bytes.size() < kHeader) fail("has " + std::to_string(bytes.size()) + " bytes");
    const std::uint32_t size = word(bytes, 0);
    if (size % 4 != 0 || size > bytes.size() - kHeader || size / 4 > kMaxUnits) {
      fail("states " + std::to_string(size) + " bytes of automaton in " + std::to_string(bytes.size()));
    }
    units_.resize(size / 4);
    for (std::size_t i = 0; i < units_.size(); ++i) units_[i] = word(bytes, kHeader + 4 * i);
    texts_ = bytes.substr(kHeader + size);
  }

  /// Checks every state that a text can reach.
  void check() const {
    if (units_.empty() || texts_.empty() || texts_.back() != '\0') fail("is cut off");
    std::vector<bool> seen(units_.size());
    std::vector<std::size_t> open{0};
    seen[0] = true;
    while (!open.empty()) {
      const std::size_t node = open.back();
      open.pop_back();
      const std::size_t base = node ^ offset(units_[node]);
      if ((base | 0xFFU) >= units_.size()) fail("has state " + std::to_string(node) + " that leads out of it");
      if (has_value(units_[node]) && value(units_[base]) >= texts_.size()) {
        fail("has state " + std::to_string(node) + " whose text is outside it");
      }
      for (std::size_t byte = 0; byte < 256; ++byte) {
        const std::size_t next = base ^ byte;
        if (label(units_[next]) != byte || seen[next]) continue;
        seen[next] = true;
        open.push_back(next);
      }
    }
  }

 private:
  // A unit of a Darts-clone array (github.com/s-yata/darts-clone, class DoubleArrayUnit).
  static std::size_t offset(std::uint32_t unit) { return std::size_t{unit >> 10} << ((unit & 0x200U) >> 6); }
  static std::uint32_t label(std::uint32_t unit) { return unit & 0x800000FFU; }
  static bool has_value(std::uint32_t unit) { return (unit & 0x100U) != 0; }
  static std::uint32_t value(std::uint32_t unit) { return unit & 0x7FFFFFFFU; }

  static std::uint32_t word(std::string_view bytes, std::size_t at) {
    std::uint32_t word = 0;
    for (unsigned i = 0; i < 4; ++i) word |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    return word;
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorCode::kInput, std::string(where_) + ": precompiled_charsmap", problem);
  }

  std::string_view where_;
  std::vector<std::uint32_t> units_;
  std::string_view texts_;
};

class Checker {
 public:
  Checker(std::string_view bytes, std::string_view where) : bytes_(bytes), where_(where) {}

  SentencePieceModel run() {
    FieldReader reader(bytes_, 0, where_);
    while (const auto field = reader.next()) {
      if (field->number < kPieces || field->number > kDenormalizer) continue;
      if (!field->has_bytes) fail("field " + std::to_string(field->number) + " is no message");
      FieldReader message(field->bytes, reader.offset_of(*field), where_);
      if (field->number == kPieces) add_piece(message);
      if (field->number == kTrainer) check_trainer(message);
      if (field->number == kNormalizer || field->number == kDenormalizer) check_normalizer(message);
    }
    check_pieces();
    return std::move(model_);
  }

 private:
  using PieceType = SentencePieceModel::PieceType;
  enum Message : std::uint64_t { kPieces = 1, kTrainer, kNormalizer, kSelfTest, kDenormalizer };

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorCode::kInput, std::string(where_), problem);
  }
  [[noreturn]] void fail_piece(const std::string& problem) const {
    fail("piece " + std::to_string(model_.pieces.size() - 1) + " \"" + printable(model_.pieces.back().text, 100) +
         "\" " + problem);
  }

  void add_piece(FieldReader& message) {
    enum : std::uint64_t { kText = 1, kScore, kType };
    if (model_.pieces.size() == kMaxVocabulary) fail("found more than " + std::to_string(kMaxVocabulary) + " pieces");
    SentencePieceModel::Piece& piece = model_.pieces.emplace_back();
    while (const auto field = message.next()) {
      if (field->number == kText) piece.text = field->bytes;
      if (field->number == kScore && !std::isfinite(std::bit_cast<float>(static_cast<std::uint32_t>(field->value)))) {
        fail_piece("has a score that is not finite");
      }
      if (field->number != kType) continue;
      if (field->value < 1 || field->value > static_cast<std::uint64_t>(PieceType::kByte)) {
        fail_piece("has type " + std::to_string(field->value) + ", expected 1 to 6");
      }
      piece.type = static_cast<PieceType>(field->value);
    }
    if (piece.text.empty()) fail_piece("is empty");
    if (piece.text.find('\0') != std::string::npos) fail_piece("holds a NUL");
    if (find_invalid_utf8(piece.text) != std::string_view::npos) fail_piece("is not UTF-8");
    if (piece.type == PieceType::kByte && !byte_of_token_name(piece.text)) fail_piece("is no byte such as <0x0A>");
    if (!texts_.insert(piece.text).second) fail_piece("has the text of an earlier one");
  }

  void check_trainer(FieldReader& message) {
    constexpr std::uint64_t kModelType = 3, kUnigram = 1, kBpe = 2;
    while (const auto field = message.next()) {
      if (field->number != kModelType || field->value == kUnigram || field->value == kBpe) continue;
      throw Error(ErrorCode::kUnsupported, std::string(where_) + ": trainer_spec.model_type",
                  "found " + std::to_string(field->value) + ", expected 1 (Unigram) or 2 (BPE)");
    }
  }

  void check_normalizer(FieldReader& message) {
    constexpr std::uint64_t kCharsMap = 2;
    while (const auto field = message.next()) {
      if (field->number == kCharsMap && !field->bytes.empty()) CharsMap(field->bytes, where_).check();
    }
  }

  void check_pieces() const {
    std::size_t unknown = 0, ordinary = 0;
    for (const auto& piece : model_.pieces) {
      unknown += piece.type == PieceType::kUnknown ? 1 : 0;
      ordinary += piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined ? 1 : 0;
    }
    if (unknown != 1) fail("found " + std::to_string(unknown) + " unknown pieces, expected one");
    if (ordinary == 0) fail("found no piece of text");
  }

  std::string_view bytes_, where_;
  SentencePieceModel model_;
  std::unordered_set<std::string> texts_;
};

}  // namespace

SentencePieceModel check_sentencepiece_model(std::string_view bytes, std::string_view where) {
  return Checker(bytes, where).run();
}

}  // namespace kvs::inline tokenizer
