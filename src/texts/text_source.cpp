// SPDX-License-Identifier: Apache-2.0
#include "texts/text_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"

namespace kvs::inline texts {
namespace {

constexpr std::size_t kReadBytes = 1UL << 20;

void require_regular(const std::filesystem::path& path, const struct stat& status) {
  if (S_ISREG(status.st_mode)) return;
  const char* kind = S_ISFIFO(status.st_mode)   ? "a FIFO"
                     : S_ISSOCK(status.st_mode) ? "a socket"
                     : S_ISDIR(status.st_mode)  ? "a folder"
                                                : "a device";
  throw Error(ErrorCode::kUsage, path.native(), std::string("found ") + kind + ", expected a regular file");
}

/// Returns the length of the maximal subpart of an ill-formed sequence at the start of `text`: the longest prefix of
/// some well-formed sequence, or 1. A prefix is valid if the smallest or the largest continuation bytes complete it.
std::size_t ill_formed_length(std::string_view text) {
  for (const std::size_t length : {3UL, 2UL}) {
    if (text.size() < length) continue;
    for (const char filler : {'\x80', '\xBF'}) {
      const std::string completed = std::string(text.substr(0, length)) + std::string(3, filler);
      if (utf8_length(completed) > length) return length;
    }
  }
  return 1;
}

}  // namespace

TextSource::TextSource(Descriptor file, std::string name, bool is_stream)
    : file_(std::move(file)), name_(std::move(name)), is_stream_(is_stream) {}

TextSource TextSource::open(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw_errno(code_of_read_errno(errno), path, "cannot be read", errno);
  require_regular(path, status);
  // Between the two calls the path may have become a FIFO: with O_NONBLOCK, open does not wait for a writer.
  Descriptor file = open_descriptor(path, O_RDONLY | O_NONBLOCK);
  if (!file.is_open()) throw_errno(code_of_read_errno(errno), path, "cannot be opened", errno);
  if (::fstat(file.get(), &status) != 0) throw_errno(ErrorCode::kEnvironment, path, "cannot be read", errno);
  require_regular(path, status);
  return {std::move(file), path.native(), false};
}

TextSource TextSource::standard_input() {
  Descriptor file(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  if (!file.is_open()) throw_errno(ErrorCode::kInput, "-", "standard input cannot be read", errno);
  return {std::move(file), "-", true};
}

/// Appends a block to the buffer. Returns false at the end of the file.
bool TextSource::fill() {
  if (at_end_) return false;
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  const std::size_t size = buffer_.size();
  buffer_.resize(size + kReadBytes);
  ssize_t count = 0;
  do count = ::read(file_.get(), buffer_.data() + size, kReadBytes);
  while (count < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  if (count < 0) throw_errno(code_of_read_errno(error), name_, "reading", error);
  at_end_ = count == 0;
  return !at_end_;
}

std::string_view TextSource::peek(std::size_t count) {
  while (buffer_.size() < count && fill()) {
  }
  return std::string_view(buffer_).substr(0, count);
}

/// Digests and discards the rest of a line that is too long, block by block.
void TextSource::skip_to_newline(Line& line) {
  line.is_too_long = true;
  for (;;) {
    const std::size_t newline = buffer_.find('\n', begin_);
    const bool found = newline != std::string::npos;
    const std::size_t end = found ? newline + 1 : buffer_.size();
    digest_.update(std::string_view(buffer_).substr(begin_, end - begin_));
    offset_ += end - begin_;
    begin_ = end;
    line.has_newline = found;
    if (found || !fill()) return;
  }
}

bool TextSource::next(Line& line) {
  std::size_t searched = 0;  // bytes after begin_ known to hold no '\n'
  std::size_t newline = std::string::npos;
  while ((newline = buffer_.find('\n', begin_ + searched)) == std::string::npos) {
    searched = buffer_.size() - begin_;
    if (searched > kLineLimit || !fill()) break;
  }
  if (begin_ == buffer_.size()) return false;
  line = Line{};
  line.number = ++lines_;
  line.offset = offset_;
  const std::size_t end = newline == std::string::npos ? buffer_.size() : newline;
  if (end - begin_ > kLineLimit) {
    skip_to_newline(line);
    return true;
  }
  line.has_newline = newline != std::string::npos;
  line.bytes = std::string_view(buffer_).substr(begin_, end - begin_);
  const std::size_t taken = line.bytes.size() + (line.has_newline ? 1 : 0);
  digest_.update(std::string_view(buffer_).substr(begin_, taken));
  begin_ += taken;
  offset_ += taken;
  return true;
}

std::string TextSource::read_rest() {
  while (fill()) {
  }
  std::string text = std::move(buffer_);
  text.erase(0, begin_);
  buffer_.clear();
  begin_ = 0;
  offset_ += text.size();
  digest_.update(std::string_view(text));
  return text;
}

std::string TextSource::finish_digest() {
  while (!is_stream_) {
    digest_.update(std::string_view(buffer_).substr(begin_));
    begin_ = buffer_.size();
    if (!fill()) break;
  }
  return digest_.finish();
}

std::string too_long_problem(std::size_t line) {
  return "line " + std::to_string(line) + ": found more than " + std::to_string(TextSource::kLineLimit) +
         " bytes, the limit of a line";
}

std::string replace_invalid_utf8(std::string_view bytes, std::size_t& replaced) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t good = std::min(find_invalid_utf8(bytes), bytes.size());
    text.append(bytes.substr(0, good));
    bytes.remove_prefix(good);
    if (bytes.empty()) break;
    const std::size_t bad = ill_formed_length(bytes);
    text.append("\xEF\xBF\xBD");
    bytes.remove_prefix(bad);
    replaced += bad;
  }
  return text;
}

}  // namespace kvs::inline texts
