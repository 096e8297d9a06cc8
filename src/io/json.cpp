// SPDX-License-Identifier: Apache-2.0
#include "io/json.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"
#include "io/python_json.h"

namespace kvs::inline io {
namespace {

constexpr std::size_t kShown = 80;  // maximum number of bytes of a file's content in a message

std::string escape_pointer(std::string_view key) {
  std::string out = "/";
  for (const char c : key) c == '~' ? out += "~0" : c == '/' ? out += "~1" : out += c;
  return out;
}

[[noreturn]] void fail_at(std::string_view text, std::string_view where, std::size_t offset, std::string_view problem) {
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 == 0 on the first line
  throw Error(ErrorCode::kInput, where,
              "line " + std::to_string(line) + ", column " + std::to_string(offset - line_start + 1) + " (byte " +
                  std::to_string(offset) + "): " + std::string(problem));
}

/// Python's words for numbers that JSON does not have, replaced by digits.
struct PythonWords {
  std::string text;                    // the text with each word replaced by as many digits as it has letters
  std::map<std::size_t, double> ends;  // the number of each word, by the offset behind the word
};

PythonWords replace_python_words(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::pair<std::string_view, double> kWords[] = {
      {"NaN", std::numeric_limits<double>::quiet_NaN()}, {"Infinity", kInfinity}, {"-Infinity", -kInfinity}};
  constexpr std::string_view kAround = " \t\r\n,:[]{}";
  PythonWords found{std::string(text), {}};
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (in_string && text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      in_string = !in_string;
    if (in_string || (at > 0 && kAround.find(text[at - 1]) == kAround.npos)) continue;
    for (const auto& [word, number] : kWords) {
      const std::size_t end = at + word.size();
      if (!text.substr(at).starts_with(word) || (end < text.size() && kAround.find(text[end]) == kAround.npos))
        continue;
      found.text.replace(at, word.size(), word.size(), '1');
      found.ends.emplace(end, number);
    }
  }
  return found;
}

/// Iterates over the text and records in `reached` the lexer's position, which the parser's events do not report.
class TrackingIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackingIterator(const char* at, const char** reached) noexcept : at_(at), reached_(reached) {}
  reference operator*() const noexcept { return *at_; }
  TrackingIterator& operator++() noexcept {
    *reached_ = ++at_;
    return *this;
  }
  TrackingIterator operator++(int) noexcept {
    TrackingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const TrackingIterator& other) const noexcept { return at_ == other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

/// Builds the document from the parser's events. The builder of ordered_json searches all members for every key. This
/// one collects the members and checks them for duplicates once per object, in O(n log n).
class Builder {
 public:
  Builder(std::string_view text, std::string_view where, const JsonLimits& limits, std::map<std::size_t, double> words)
      : text_(text), where_(where), limits_(limits), words_(std::move(words)) {}

  Json parse() {
    Json::sax_parse(TrackingIterator(text_.data(), &reached_), TrackingIterator(text_.data() + text_.size(), &reached_),
                    this);
    return std::move(root_);
  }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) {
    auto word = words_.find(offset() - 1);  // the lexer has read one character past the number, if there is one
    if (word == words_.end()) word = words_.find(offset());
    return word == words_.end() ? add(value) : add(word->second);
  }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }

  bool key(std::string& name) {
    Frame& frame = open_.back();
    frame.key_ends.push_back(offset());
    frame.members.emplace_back(std::move(name), nullptr);
    return true;
  }

  bool end_object() {
    Frame frame = close();
    refuse_duplicates(frame);
    Json::object_t object;
    object.reserve(frame.members.size());
    for (auto& [name, value] : frame.members) object.emplace_back(std::move(name), std::move(value));
    return place(std::move(object));
  }

  bool end_array() { return place(close().elements); }

  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ...": cut the position, which
    // fail_at() states.
    std::string_view message = error.what();
    message.remove_prefix(std::min(message.find("] ") + 2, message.size()));
    if (message.starts_with("parse error")) message.remove_prefix(std::min(message.find(": ") + 2, message.size()));
    fail_at(text_, where_, std::min(position == 0 ? 0 : position - 1, text_.size()), printable(message, 2 * kShown));
  }

  // The parser requires this function, but JSON text has no binary values.
  bool binary(Json::binary_t&) { return false; }

 private:
  struct Frame {
    bool is_object;
    std::vector<std::pair<std::string, Json>> members;
    std::vector<std::size_t> key_ends;  // offset after each key's closing quote
    Json::array_t elements;
  };

  std::size_t offset() const noexcept { return static_cast<std::size_t>(reached_ - text_.data()); }

  void count_value() {
    if (++values_ > limits_.values)
      fail_at(text_, where_, offset() - 1, "expected at most " + std::to_string(limits_.values) + " values");
  }

  template <class T>
  bool add(T&& value) {
    count_value();
    return place(Json(std::forward<T>(value)));
  }

  bool place(Json value) {
    if (open_.empty())
      root_ = std::move(value);
    else if (open_.back().is_object)
      open_.back().members.back().second = std::move(value);
    else
      open_.back().elements.push_back(std::move(value));
    return true;
  }

  bool open(bool is_object) {
    count_value();
    if (open_.size() >= limits_.depth)
      fail_at(text_, where_, offset() - 1, "expected at most " + std::to_string(limits_.depth) + " levels of nesting");
    open_.push_back({is_object, {}, {}, {}});
    return true;
  }

  Frame close() {
    Frame frame = std::move(open_.back());
    open_.pop_back();
    return frame;
  }

  /// Returns the offset of the opening quote of the key whose closing quote is just before `end`.
  std::size_t key_start(std::size_t end) const noexcept {
    std::size_t at = end - 2;
    for (;; --at) {
      if (text_[at] != '"') continue;
      std::size_t slashes = 0;
      while (text_[at - 1 - slashes] == '\\') ++slashes;
      if (slashes % 2 == 0) return at;
    }
  }

  void refuse_duplicates(const Frame& frame) const {
    const auto& members = frame.members;
    std::vector<std::size_t> order(members.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const int compared = members[a].first.compare(members[b].first);
      return compared != 0 ? compared < 0 : a < b;
    });
    const auto twin = std::adjacent_find(
        order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return members[a].first == members[b].first; });
    if (twin == order.end()) return;
    const auto &first = members[twin[0]], &second = members[twin[1]];
    fail_at(text_, where_, key_start(frame.key_ends[twin[1]]),
            "duplicate key \"" + printable(first.first, kShown) + "\": found " + describe_json(first.second) +
                " and then " + describe_json(second.second));
  }

  std::string_view text_, where_;
  const JsonLimits& limits_;
  std::map<std::size_t, double> words_;  // numbers written as words, by the offset of their end
  const char* reached_ = text_.data();
  std::vector<Frame> open_;
  std::size_t values_ = 0;
  Json root_;
};

/// Throws for the first value that JSON text cannot represent.
void check_writable(const Json& value, std::string& pointer) {
  const std::size_t length = pointer.size();
  const auto fail = [&](std::string_view problem) {
    throw Error(ErrorCode::kData, pointer.empty() ? "the JSON document" : pointer, problem);
  };
  if (const auto* number = value.get_ptr<const double*>(); number != nullptr && !std::isfinite(*number))
    fail(std::string("found ") + (std::isnan(*number) ? "NaN" : "infinity") + ", expected a finite number");
  if (const auto* text = value.get_ptr<const Json::string_t*>(); text && find_invalid_utf8(*text) != text->npos)
    fail("found a string that is not UTF-8");
  if (value.is_array())
    for (std::size_t index = 0; index < value.size(); ++index) {
      pointer += '/' + std::to_string(index);
      check_writable(value[index], pointer);
      pointer.resize(length);
    }
  if (value.is_object())
    for (const auto& [key, member] : value.items()) {
      pointer += escape_pointer(key);
      if (find_invalid_utf8(key) != key.npos) fail("found a key that is not UTF-8");
      check_writable(member, pointer);
      pointer.resize(length);
    }
}

void check_text(std::string_view text, std::string_view where, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    throw Error(ErrorCode::kInput, where,
                "found " + std::to_string(text.size()) + " bytes, expected at most " + std::to_string(limits.bytes));
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    fail_at(text, where, 0, "found UTF-16, expected UTF-8");
  if (text.starts_with("\xef\xbb\xbf")) fail_at(text, where, 0, "found a byte order mark, expected JSON");
  // The parser would take a NUL as the end of the text and ignore the rest.
  if (const std::size_t at = text.find('\0'); at != text.npos)
    fail_at(text, where, at, at < 4 ? "found a NUL byte (UTF-16?), expected UTF-8 JSON" : "found a NUL byte");
  if (const std::size_t at = find_invalid_utf8(text); at != text.npos) fail_at(text, where, at, "found invalid UTF-8");
}

}  // namespace

Json parse_json(std::string_view text, std::string_view where, JsonLimits limits) {
  check_text(text, where, limits);
  return Builder(text, where, limits, {}).parse();
}

Json parse_python_json(std::string_view text, std::string_view where, JsonLimits limits) {
  check_text(text, where, limits);
  const PythonWords words = replace_python_words(text);
  return Builder(words.text, where, limits, words.ends).parse();
}

std::string dump_json(const Json& value, int indent) {
  std::string pointer;
  check_writable(value, pointer);
  return value.dump(indent);
}

std::string describe_json(const Json& value) {
  if (value.is_object()) return "an object of " + std::to_string(value.size()) + " members";
  if (value.is_array()) return "an array of " + std::to_string(value.size()) + " elements";
  if (const auto* text = value.get_ptr<const Json::string_t*>()) return '"' + printable(*text, kShown) + '"';
  if (const auto* real = value.get_ptr<const double*>(); real != nullptr && !std::isfinite(*real))
    return std::isnan(*real) ? "nan" : *real > 0 ? "inf" : "-inf";  // dump() writes null
  return value.dump();
}

JsonCursor::JsonCursor(const Json& value, std::string where, std::string pointer) noexcept
    : value_(&value), where_(std::move(where)), pointer_(std::move(pointer)) {}

void JsonCursor::fail(std::string_view expected) const {
  throw Error(ErrorCode::kInput, place(), "found " + describe_json(*value_) + ", expected " + std::string(expected));
}

JsonCursor JsonCursor::at(std::string_view key) const {
  if (!value_->is_object()) fail("an object");
  const auto member = value_->find(key);
  if (member == value_->end())
    throw Error(ErrorCode::kInput, where_ + ": " + pointer_ + escape_pointer(key), "found nothing, expected a value");
  return {*member, where_, pointer_ + escape_pointer(key)};
}

bool JsonCursor::has(std::string_view key) const {
  if (!value_->is_object()) fail("an object");
  const auto member = value_->find(key);
  return member != value_->end() && !member->is_null();
}

JsonCursor JsonCursor::at(std::size_t index) const {
  if (index >= array_size()) fail("at least " + std::to_string(index + 1) + " elements");
  return {(*value_)[index], where_, pointer_ + '/' + std::to_string(index)};
}

std::size_t JsonCursor::array_size() const {
  if (!value_->is_array()) fail("an array");
  return value_->size();
}

std::vector<std::string> JsonCursor::keys() const {
  if (!value_->is_object()) fail("an object");
  std::vector<std::string> names;
  for (const auto& member : value_->items()) names.push_back(member.key());
  return names;
}

const std::string& JsonCursor::string() const {
  const auto* text = value_->get_ptr<const Json::string_t*>();
  if (text == nullptr) fail("a string");
  return *text;
}

bool JsonCursor::boolean() const {
  if (!value_->is_boolean()) fail("true or false");
  return value_->get<bool>();
}

double JsonCursor::real() const {
  if (!value_->is_number()) fail("a number");
  const double number = value_->get<double>();
  if (!std::isfinite(number)) fail("a finite number");
  return number;
}

double JsonCursor::positive() const {
  const double number = real();
  if (!(number > 0)) fail("a number above 0");
  return number;
}

double JsonCursor::positive_f32() const {
  const double number = positive();
  if (number < double{std::numeric_limits<float>::min()} || number > double{std::numeric_limits<float>::max()})
    fail("a number above 0 in the range of f32");
  return number;
}

std::int64_t JsonCursor::integer(std::int64_t least, std::int64_t most) const {
  // Checks the stored kind: get<int64_t>() would turn 30.5 into 30, true into 1 and 2^63 into -2^63.
  const auto* positive = value_->get_ptr<const std::uint64_t*>();
  const bool fits = positive == nullptr ? value_->is_number_integer() : std::in_range<std::int64_t>(*positive);
  if (fits) {
    const auto number = value_->get<std::int64_t>();
    if (number >= least && number <= most) return number;
  }
  fail("an integer from " + std::to_string(least) + " to " + std::to_string(most));
}

std::uint64_t JsonCursor::unsigned_integer(std::uint64_t most) const {
  const bool negative = !value_->is_number_unsigned() && value_->is_number_integer() && value_->get<std::int64_t>() < 0;
  if (value_->is_number_integer() && !negative) {
    const auto number = value_->get<std::uint64_t>();
    if (number <= most) return number;
  }
  fail("an integer from 0 to " + std::to_string(most));
}

}  // namespace kvs::inline io
