// SPDX-License-Identifier: Apache-2.0
#include "texts/wordnet.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/checked.h"
#include "core/error.h"
#include "io/digest.h"

namespace kvs::inline texts {
namespace {

constexpr std::array kPartsOfSpeech{"noun", "verb", "adj", "adv"};
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 28;  // the largest file of WordNet 3.0 has 15 MB
constexpr std::size_t kOffsetDigits = 8;

bool is_plain_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
}

/// The space-separated fields of a line. Messages name the line's position.
class Fields {
 public:
  Fields(std::string_view line, std::string where) : rest_(line), where_(std::move(where)) {}

  std::string_view next(std::string_view name) {
    const std::size_t end = rest_.find(' ');
    if (end == 0 || end == std::string_view::npos) fail(name, "the end of the line");
    const std::string_view field = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return field;
  }
  std::uint32_t number(std::string_view name) {
    const std::string_view field = next(name);
    const auto value = parse_integer<std::uint32_t>(field);
    if (!value) fail(name, "'" + std::string(field) + "'");
    return *value;
  }
  [[noreturn]] void fail(std::string_view name, const std::string& found) const {
    throw Error(ErrorCode::kInput, where_, "found " + found + ", expected " + std::string(name));
  }

 private:
  std::string_view rest_;
  std::string where_;
};

/// lemma pos synset_count pointer_count pointer… sense_count tagged_count offset… (wndb(5WN)).
std::vector<std::uint32_t> senses_of(Fields& fields) {
  fields.next("a part of speech");
  const std::uint32_t synsets = fields.number("a number of synsets");
  for (std::uint32_t left = fields.number("a number of pointers"); left > 0; --left) fields.next("a pointer");
  fields.number("a number of senses");
  fields.number("a number of tagged senses");
  std::vector<std::uint32_t> offsets;
  for (std::uint32_t n = 0; n < synsets; ++n) offsets.push_back(fields.number("an offset of a synset"));
  return offsets;
}

/// Returns a synset's word without the marker of an adjective's position, as in "afraid(p)".
std::string_view without_marker(std::string_view word) { return word.substr(0, word.find('(')); }

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// offset file_number type word_count (word lexical_id)… (wndb(5WN)); counts and ids are hexadecimal.
std::vector<std::string_view> words_of(const MappedFile& file, std::uint32_t offset) {
  const std::string_view text = text_of(file);
  const std::string where = file.path().string() + ": offset " + std::to_string(offset);
  const bool starts_line = offset < text.size() && (offset == 0 || text[offset - 1] == '\n');
  const std::string_view rest = text.substr(std::min<std::size_t>(offset, text.size()));
  Fields fields(rest.substr(0, rest.find('\n')), where);
  if (!starts_line) fields.fail("a synset", "no start of a line");
  const std::string_view own = fields.next("the synset's offset");
  if (own.size() != kOffsetDigits || parse_integer<std::uint32_t>(own) != offset)
    fields.fail("the synset's offset", "'" + std::string(own) + "'");
  fields.next("a file number");
  fields.next("a type of synset");
  const std::string_view count = fields.next("a number of words");
  std::uint32_t left = 0;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), left, 16);
  if (error != std::errc{} || end != count.data() + count.size())
    fields.fail("a number of words", "'" + std::string(count) + "'");
  std::vector<std::string_view> words;
  for (; left > 0; --left) {
    words.push_back(without_marker(fields.next("a word")));
    fields.next("a lexical id");
  }
  return words;
}

std::filesystem::path existing(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path))
    throw Error(ErrorCode::kEnvironment, path.string(),
                "not found, expected WordNet's database (Debian: apt-get install wordnet-base)");
  return path;
}

}  // namespace

WordNet::WordNet(const std::filesystem::path& folder) {
  Sha256 digest;
  for (const std::string part : kPartsOfSpeech) {
    const std::filesystem::path path = existing(folder / ("index." + part));
    PartOfSpeech& of_part = parts_.emplace_back(PartOfSpeech{MappedFile(existing(folder / ("data." + part))), {}});
    const std::string index = read_text_file(path, kMaxFileBytes);
    digest.update(index);
    digest.update(of_part.data.bytes());
    std::size_t line_number = 0;
    for (std::string_view rest = index; !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      ++line_number;
      if (line.starts_with(' ')) continue;  // the licence
      Fields fields(line, path.string() + ": line " + std::to_string(line_number));
      const std::string_view word = fields.next("a word");
      if (is_plain_word(word)) of_part.senses.insert_or_assign(std::string(word), senses_of(fields));
    }
  }
  sha256_ = digest.finish();
}

std::vector<std::string> WordNet::synonyms(std::string_view word) const {
  std::set<std::string> found;
  for (const PartOfSpeech& part : parts_) {
    const auto senses = part.senses.find(word);
    if (senses == part.senses.end()) continue;
    for (const std::uint32_t offset : senses->second) {
      const std::vector<std::string_view> words = words_of(part.data, offset);
      if (std::ranges::find(words, word) == words.end()) continue;  // its spelling has a capital: a proper noun
      const std::size_t before = found.size();
      for (const std::string_view other : words)
        if (other != word && is_plain_word(other)) found.emplace(other);
      if (found.size() > before) break;
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace kvs::inline texts
