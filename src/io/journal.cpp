// SPDX-License-Identifier: Apache-2.0
#include "io/journal.h"

#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "io/descriptor.h"
#include "io/digest.h"
#include "io/file.h"

namespace kvs::inline io {
namespace {

namespace fs = std::filesystem;

// A line is [RECORD,"e3069283"]. It is valid JSON and ends with the CRC-32C over the bytes of all records so far. So a
// line that is lost, repeated or written by another process is detected.
constexpr std::string_view kLineEnd = "\"]\n";
constexpr std::size_t kChecksumDigits = 8;
constexpr std::size_t kTail = 2 + kChecksumDigits + kLineEnd.size();
constexpr std::size_t kMaxBytes = 1UL << 30;

std::uint32_t continued(std::uint32_t crc, std::string_view record) {
  return crc32c(std::as_bytes(std::span(record)), crc);
}

std::string digits_of(std::uint32_t crc) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (int shift = 28; shift >= 0; shift -= 4) text += kHex[(crc >> shift) & 15];
  return text;
}

/// @param crc  in: of the lines before; out: including this line
std::string make_line(const Json& record, std::uint32_t& crc) {
  const std::string text = dump_json(record, -1);
  crc = continued(crc, text);
  return '[' + text + ",\"" + digits_of(crc) + std::string(kLineEnd);
}

/// Returns the record of a line (with its newline), or nullopt if the line is damaged or is not the next line.
/// @param crc  of the lines before
std::optional<std::string_view> record_of(std::string_view line, std::uint32_t crc) {
  if (line.size() <= 1 + kTail || line.front() != '[' || !line.ends_with(kLineEnd)) return std::nullopt;
  const std::string_view record = line.substr(1, line.size() - 1 - kTail);
  const std::string_view stored = line.substr(1 + record.size());
  if (!stored.starts_with(",\"") || stored.substr(2, kChecksumDigits) != digits_of(continued(crc, record)))
    return std::nullopt;
  return record;
}

struct Lines {
  Journal::Content content;
  std::size_t good_bytes = 0;  // where a torn last line starts
  std::uint32_t crc = 0;       // of the records before it
};

/// @param name  the journal's name, for errors
Lines parse_lines(std::string_view text, const std::string& name) {
  Lines lines;
  std::size_t number = 0;
  while (lines.good_bytes < text.size()) {
    const std::size_t newline = text.find('\n', lines.good_bytes);
    const std::size_t end = newline == std::string::npos ? text.size() : newline + 1;
    const std::string where = name + ": line " + std::to_string(number + 1);
    const auto record = record_of(text.substr(lines.good_bytes, end - lines.good_bytes), lines.crc);
    // Line 0 was renamed into place as a whole, so only a later line can be torn.
    if (!record && number > 0 && end == text.size()) break;
    if (!record) throw Error(ErrorCode::kInput, where, "damaged: its CRC-32C does not match");
    lines.crc = continued(lines.crc, *record);
    Json value = parse_json(*record, where);
    if (number == 0)
      lines.content.identity = std::move(value);
    else
      lines.content.records.push_back(std::move(value));
    lines.good_bytes = end;
    ++number;
  }
  if (number == 0) throw Error(ErrorCode::kInput, name, "the journal is empty");
  return lines;
}

Lines read_lines(const fs::path& path) { return parse_lines(read_text_file(path, kMaxBytes), path.native()); }

std::string shown(const Json* value) { return value == nullptr ? "nothing" : printable(value->dump(), 80); }

/// Appends "field: stored X, now Y" for every leaf that differs. Ignores the order of an object's members.
void list_differences(const Json* stored, const Json* now, const std::string& field, std::string& out) {
  if (stored != nullptr && now != nullptr && stored->is_object() && now->is_object()) {
    const std::string start = field.empty() ? "" : field + ".";
    for (const auto& [key, value] : stored->items()) {
      const auto other = now->find(key);
      list_differences(&value, other == now->end() ? nullptr : &*other, start + key, out);
    }
    for (const auto& [key, value] : now->items())
      if (!stored->contains(key)) list_differences(nullptr, &value, start + key, out);
    return;
  }
  if (stored != nullptr && now != nullptr && *stored == *now) return;
  if (!out.empty()) out += "; ";
  out += (field.empty() ? "identity" : field) + ": stored " + shown(stored) + ", now " + shown(now);
}

Descriptor open_to_append(const fs::path& path) {
  Descriptor file = open_descriptor(path, O_WRONLY | O_APPEND);
  if (!file.is_open()) throw_errno(ErrorCode::kEnvironment, path, "cannot open the journal", errno);
  return file;
}

}  // namespace

Journal::Journal(fs::path path, int descriptor, std::uint32_t crc) noexcept
    : path_(std::move(path)), descriptor_(descriptor), crc_(crc) {}

Journal::Journal(Journal&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      crc_(other.crc_),
      records_(std::move(other.records_)) {}

Journal::~Journal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Journal Journal::create(const fs::path& path, const Json& identity) {
  std::uint32_t crc = 0;
  write_file_atomically(path, make_line(identity, crc), false);
  return Journal(path, open_to_append(path).release(), crc);
}

Journal Journal::resume(const fs::path& path, const Json& identity) {
  Lines lines = read_lines(path);
  std::string differences;
  list_differences(&lines.content.identity, &identity, "", differences);
  if (!differences.empty()) throw Error(ErrorCode::kConflict, path.native(), "made for another run: " + differences);
  Descriptor file = open_to_append(path);
  // The torn line must be removed: the next append would extend it and damage both lines.
  if (::ftruncate(file.get(), static_cast<off_t>(lines.good_bytes)) != 0 || ::fdatasync(file.get()) != 0)
    throw_errno(ErrorCode::kEnvironment, path, "cannot remove a torn line", errno);
  Journal journal(path, file.release(), lines.crc);
  journal.records_ = std::move(lines.content.records);
  return journal;
}

Journal::Content Journal::read(const fs::path& path) { return read_lines(path).content; }

Journal::Content Journal::parse(std::string_view text, const std::string& name) {
  return parse_lines(text, name).content;
}

void Journal::append(const Json& record) {
  if (descriptor_ < 0)
    throw Error(ErrorCode::kInternal, path_.native(), "append to a journal that failed or was removed");
  const std::string line = make_line(record, crc_);
  Descriptor file(std::exchange(descriptor_, -1));  // on failure it stays closed: no line may follow a torn one
  append_to(file.get(), path_, std::as_bytes(std::span(line)));
  if (::fdatasync(file.get()) != 0) throw_errno(ErrorCode::kEnvironment, path_, "cannot sync", errno);
  descriptor_ = file.release();
}

void Journal::remove() {
  ::unlink(path_.c_str());
  sync_directory(directory_of(path_));
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

}  // namespace kvs::inline io
