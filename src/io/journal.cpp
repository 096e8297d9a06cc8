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

namespace kvs {
namespace {

namespace fs = std::filesystem;

// A line is [RECORD,"e3069283"]: valid JSON, its CRC-32C over the bytes of RECORD.
constexpr std::string_view kLineEnd = "\"]\n";
constexpr std::size_t kChecksumDigits = 8;
constexpr std::size_t kTail = 2 + kChecksumDigits + kLineEnd.size();
constexpr std::size_t kMostBytes = 1UL << 30;

std::string checksum(std::string_view record) {
  constexpr char kHex[] = "0123456789abcdef";
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(record)));
  std::string text;
  for (int shift = 28; shift >= 0; shift -= 4) text += kHex[(crc >> shift) & 15];
  return text;
}

std::string make_line(const Json& record) {
  const std::string text = dump_json(record, -1);
  return '[' + text + ",\"" + checksum(text) + std::string(kLineEnd);
}

/// The record of a line (with its newline), or nothing if the line is damaged.
std::optional<std::string_view> record_of(std::string_view line) {
  if (line.size() <= 1 + kTail || line.front() != '[' || !line.ends_with(kLineEnd)) return std::nullopt;
  const std::string_view record = line.substr(1, line.size() - 1 - kTail);
  const std::string_view stored = line.substr(1 + record.size());
  if (!stored.starts_with(",\"") || stored.substr(2, kChecksumDigits) != checksum(record)) return std::nullopt;
  return record;
}

struct Lines {
  Journal::Content content;
  std::size_t good_bytes = 0;  // where a torn last line starts
};

Lines read_lines(const fs::path& path) {
  const std::string text = read_text_file(path, kMostBytes);
  Lines lines;
  std::size_t number = 0;
  while (lines.good_bytes < text.size()) {
    const std::size_t newline = text.find('\n', lines.good_bytes);
    const std::size_t end = newline == std::string::npos ? text.size() : newline + 1;
    const std::string where = path.native() + ": line " + std::to_string(number + 1);
    const auto record = record_of(std::string_view(text).substr(lines.good_bytes, end - lines.good_bytes));
    // Line 0 was renamed into place whole, so only a later one can be torn.
    if (!record && number > 0 && end == text.size()) break;
    if (!record) throw Error(ErrorCode::kInput, where, "damaged: its CRC-32C does not match");
    Json value = parse_json(*record, where);
    if (number == 0)
      lines.content.identity = std::move(value);
    else
      lines.content.records.push_back(std::move(value));
    lines.good_bytes = end;
    ++number;
  }
  if (number == 0) throw Error(ErrorCode::kInput, path.native(), "the journal is empty");
  return lines;
}

std::string shown(const Json* value) { return value == nullptr ? "nothing" : printable(value->dump(), 80); }

/// Appends "field: stored X, now Y" for every leaf that differs; the order of an object's members does not count.
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

Journal::Journal(fs::path path, int descriptor) noexcept : path_(std::move(path)), descriptor_(descriptor) {}

Journal::Journal(Journal&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      records_(std::move(other.records_)) {}

Journal::~Journal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Journal Journal::create(const fs::path& path, const Json& identity) {
  write_file_atomically(path, make_line(identity), false);
  return Journal(path, open_to_append(path).release());
}

Journal Journal::resume(const fs::path& path, const Json& identity) {
  Lines lines = read_lines(path);
  std::string differences;
  list_differences(&lines.content.identity, &identity, "", differences);
  if (!differences.empty()) throw Error(ErrorCode::kConflict, path.native(), "made for another run: " + differences);
  Descriptor file = open_to_append(path);
  // The torn line must go, or the next append would end up on it and damage both.
  if (::ftruncate(file.get(), static_cast<off_t>(lines.good_bytes)) != 0 || ::fdatasync(file.get()) != 0)
    throw_errno(ErrorCode::kEnvironment, path, "cannot cut a torn line off", errno);
  Journal journal(path, file.release());
  journal.records_ = std::move(lines.content.records);
  return journal;
}

Journal::Content Journal::read(const fs::path& path) { return read_lines(path).content; }

void Journal::append(const Json& record) {
  if (descriptor_ < 0)
    throw Error(ErrorCode::kInternal, path_.native(), "append to a journal that failed or was removed");
  const std::string line = make_line(record);
  Descriptor file(std::exchange(descriptor_, -1));  // after a failure nothing may be written behind a torn line
  ssize_t written = 0;
  do written = ::write(file.get(), line.data(), line.size());
  while (written < 0 && errno == EINTR);
  if (written < 0) throw_errno(ErrorCode::kEnvironment, path_, "cannot write", errno);
  if (static_cast<std::size_t>(written) != line.size())
    throw Error(ErrorCode::kEnvironment, path_.native(),
                "wrote " + std::to_string(written) + " of " + std::to_string(line.size()) + " bytes: disk full?");
  if (::fdatasync(file.get()) != 0) throw_errno(ErrorCode::kEnvironment, path_, "cannot sync", errno);
  records_.push_back(record);
  descriptor_ = file.release();
}

void Journal::remove() {
  ::unlink(path_.c_str());
  sync_directory(directory_of(path_));
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

}  // namespace kvs
