// SPDX-License-Identifier: Apache-2.0
#include "texts/token_line.h"

#include <algorithm>

#include "core/checked.h"
#include "core/error.h"

namespace kvs::inline texts {
namespace {

constexpr std::string_view kIdSeparators = " \t\r\n";

class Parser {
 public:
  Parser(std::string_view line, std::string_view where, std::size_t vocabulary_size)
      : line_(line), where_(where), vocabulary_size_(vocabulary_size) {}

  std::vector<std::int32_t> parse() {
    std::vector<std::int32_t> ids;
    skip_blank();
    if (!take('[')) fail("expected '['");
    skip_blank();
    if (!take(']')) {
      do ids.push_back(id());
      while (take(','));
      if (!take(']')) fail("expected ',' or ']'");
    }
    skip_blank();
    if (at_ != line_.size()) fail("expected the end of the line");
    return ids;
  }

 private:
  void skip_blank() { at_ = std::min(line_.find_first_not_of(kIdSeparators, at_), line_.size()); }

  bool take(char wanted) {
    if (at_ == line_.size() || line_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  std::int32_t id() {
    skip_blank();
    const std::size_t end = std::min(line_.find_first_of(",] \t\r\n", at_), line_.size());
    const std::string_view text = line_.substr(at_, end - at_);
    const auto value = parse_integer<std::uint64_t>(text);
    const bool leading_zero = text.size() > 1 && text.front() == '0';
    if (!value || leading_zero || *value >= vocabulary_size_) {
      fail("expected a token id from 0 to " + std::to_string(vocabulary_size_ - 1) + " (vocabulary size " +
           std::to_string(vocabulary_size_) + ")");
    }
    at_ = end;
    skip_blank();
    return static_cast<std::int32_t>(*value);
  }

  [[noreturn]] void fail(const std::string& expected) const {
    const std::size_t end = std::min({line_.find_first_of(",] \t\r\n", at_ + 1), line_.size(), at_ + 40});
    const std::string found = at_ < line_.size() ? '"' + printable(line_.substr(at_, end - at_)) + '"' : "the end";
    throw Error(ErrorCode::kInput, where_, "column " + std::to_string(at_ + 1) + ": found " + found + ", " + expected);
  }

  std::string_view line_, where_;
  std::size_t vocabulary_size_, at_ = 0;
};

}  // namespace

std::vector<std::int32_t> parse_token_line(std::string_view line, std::string_view where, std::size_t vocabulary_size) {
  return Parser(line, where, vocabulary_size).parse();
}

}  // namespace kvs::inline texts
