// SPDX-License-Identifier: Apache-2.0
#include "texts/text_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/utf8.h"
#include "io/file_kind.h"
#include "io/json.h"
#include "io/json_line.h"
#include "io/text_kind.h"

namespace kvs::inline texts {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBlank = " \t\r\n\v\f";

/// Returns the regular files of `folder` (also through symbolic links) in byte order of names. Hidden files are left
/// out: programs write them for their own use.
std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    struct stat status {};
    const bool is_hidden = entry->path().filename().native().starts_with('.');
    if (!is_hidden && find_status(entry->path(), status) && S_ISREG(status.st_mode)) files.push_back(entry->path());
  }
  if (error)
    throw Error(code_of_read_errno(error.value()), folder.native(), "the folder cannot be read: " + error.message());
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return files;
}

bool is_folder(const std::string& path) {
  struct stat status {};
  return find_status(path, status) && S_ISDIR(status.st_mode);
}

/// Returns true if the first line of a text is a complete JSON object. A longer line is not parsed, to save memory.
bool begins_with_object(std::string_view text) {
  constexpr std::size_t kLongest = std::size_t{1} << 20;
  const std::string_view line = text.substr(0, text.find('\n'));
  if (line.size() > kLongest) return false;
  if (line.find_first_not_of(kBlank) == std::string_view::npos || line[line.find_first_not_of(kBlank)] != '{')
    return false;
  try {
    return parse_json(line, "").is_object();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

bool TextReader::is_blank_line(const TextSource::Line& line) noexcept {
  return !line.is_too_long && line.bytes.find_first_not_of(kBlank) == std::string_view::npos;
}

void TextReader::read(const std::string& argument, const Take& take) {
  if (argument == "-") {
    if (wants_more_) read_prose(TextSource::standard_input(), take);
  } else if (!is_folder(argument)) {
    read_file(argument, take);
  } else {
    for (const fs::path& file : files_of(argument)) read_file(file, take);
  }
}

void TextReader::read_file(const fs::path& path, const Take& take) {
  if (!wants_more_) return;
  TextSource source = TextSource::open(path);
  if (text_kind(path) == TextKind::kLines) return read_json_lines(std::move(source), take);
  read_prose(std::move(source), take);
}

void TextReader::read_prose(TextSource source, const Take& take) {
  refuse_foreign_text(source.peek(kKindBytes), source.name());
  check_interrupt();
  const std::string text = valid_text(source.read_rest(), source.name(), 1, 0);
  if (begins_with_object(text)) json_like_.push_back(source.name());
  wants_more_ = take(source.name(), text);
  record(source);
}

void TextReader::read_json_lines(TextSource source, const Take& take) {
  refuse_foreign_text(source.peek(kKindBytes), source.name());
  const std::string name = source.name();
  const auto text_of = [&](const TextSource::Line& line, const std::string& where) {
    const std::string bytes = valid_text(std::string(line.bytes), name, line.number, line.offset);
    const Json object = parse_json_line(bytes, where, line.has_newline);
    return text_of_object(JsonCursor(object, where));
  };
  read_lines(std::move(source), text_of, take);
}

/// @param line, offset  position of the first byte of `bytes` in the file
std::string TextReader::valid_text(std::string bytes, const std::string& name, std::size_t line, std::size_t offset) {
  const std::size_t bad = find_invalid_utf8(bytes);
  if (bad == std::string::npos) return bytes;
  if (leniency_.replace_invalid_utf8) return replace_invalid_utf8(bytes, replaced_bytes_);
  line += static_cast<std::size_t>(std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bad), '\n'));
  throw Error(ErrorCode::kInput, name,
              "line " + std::to_string(line) + ", byte offset " + std::to_string(offset + bad) + ": found " +
                  printable(std::string_view(bytes).substr(bad, 1)) +
                  ", expected UTF-8 (--invalid-utf8=replace puts U+FFFD in its place)");
}

}  // namespace kvs::inline texts
