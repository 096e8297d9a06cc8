#include "io/corpus.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/utf8.h"
#include "io/descriptor.h"
#include "io/digest.h"
#include "io/file_kind.h"
#include "io/json_line.h"
#include "io/text_kind.h"
#include "io/text_source.h"
#include "io/token_line.h"
#include "io/tokenizer/tokenizer.h"

namespace kvs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBlank = " \t\r\n\v\f";

std::string line_name(const TextSource& source, const TextSource::Line& line) {
  return source.name() + ": line " + std::to_string(line.number);
}

/// The regular files of `folder` (also through symbolic links) in byte order of names, without hidden ones, which
/// programs leave there for themselves.
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

std::string digest_of(std::span<const std::int32_t> ids) {
  Sha256 digest;
  digest.update(std::as_bytes(ids));
  return digest.finish();
}

bool is_folder(const std::string& path) {
  struct stat status {};
  return find_status(path, status) && S_ISDIR(status.st_mode);
}

class Reader {
 public:
  Reader(const CorpusOptions& options, const Tokenizer* tokenizer, std::size_t vocabulary_size)
      : options_(options), tokenizer_(tokenizer), vocabulary_size_(vocabulary_size) {}

  Corpus read() {
    check_options();
    corpus_.bos = options_.bos;
    for (const std::string& text : options_.texts) read_argument(text);
    if (options_.tokens_file) read_tokens_file(*options_.tokens_file);
    if (corpus_.documents.empty()) fail_without_documents();
    return std::move(corpus_);
  }

 private:
  enum class LineKind { kJson, kTokens };

  void check_options() const {
    const auto refuse = [](std::string_view option, std::string_view problem) {
      throw Error(ErrorCode::kUsage, "--" + std::string(option), problem);
    };
    if (options_.texts.empty() == !options_.tokens_file) refuse("text", "expected either texts or a file of tokens");
    if (std::count(options_.texts.begin(), options_.texts.end(), "-") > 1) refuse("text", "found - twice");
    if (!options_.texts.empty() && tokenizer_ == nullptr) {
      throw Error(ErrorCode::kInternal, "read_corpus", "texts need a tokenizer");
    }
    if (has_bos() && static_cast<std::size_t>(options_.bos) >= vocabulary_size_)
      refuse("bos", "found id " + std::to_string(options_.bos) + ", expected one below the model's " +
                        std::to_string(vocabulary_size_) + ", or off");
    if (options_.window < (has_bos() ? 2U : 1U)) refuse("window", "found a window without room for a token");
    if (options_.documents == std::size_t{0}) refuse("documents", "found 0, expected at least 1");
  }

  bool has_bos() const { return options_.bos >= 0; }

  bool is_full() const { return options_.documents && corpus_.documents.size() >= *options_.documents; }

  void read_argument(const std::string& argument) {
    if (argument == "-") {
      read_source(TextSource::standard_input(), TextKind::kProse);
    } else if (!is_folder(argument)) {
      read_file(argument);
    } else {
      for (const fs::path& file : files_of(argument)) read_file(file);
    }
  }

  void read_file(const fs::path& path) {
    if (!is_full()) read_source(TextSource::open(path), text_kind(path));
  }

  void read_source(TextSource source, TextKind kind) {
    if (is_full()) return;
    refuse_foreign_text(source.peek(kKindBytes), source.name());
    if (kind == TextKind::kLines) {
      read_lines(std::move(source), LineKind::kJson);
      return;
    }
    check_interrupt();
    add_text(source.name(), encode(source.name(), valid_text(source.read_rest(), source, 1, 0)));
    record(source);
  }

  void read_tokens_file(const fs::path& path) {
    TextSource source = TextSource::open(path);
    refuse_foreign_text(source.peek(kKindBytes), source.name());
    read_lines(std::move(source), LineKind::kTokens);
  }

  void record(TextSource& source) {
    corpus_.text_names.push_back(source.name());
    corpus_.text_sha256.push_back(source.finish_digest());
  }

  void read_lines(TextSource source, LineKind kind) {
    for (TextSource::Line line; !is_full() && source.next(line);) {
      check_interrupt();
      if (!line.is_too_long && line.bytes.find_first_not_of(kBlank) == std::string_view::npos) continue;
      const std::string where = line_name(source, line);
      std::string text;
      std::vector<std::int32_t> ids;
      try {
        if (line.is_too_long) throw Error(ErrorCode::kInput, source.name(), too_long_problem(line.number));
        if (kind == LineKind::kTokens) ids = parse_token_line(line.bytes, where, vocabulary_size_);
        if (kind == LineKind::kJson) text = text_of_json_line(source, line, where);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kInput || !options_.skip_bad_lines) throw;
        ++corpus_.skipped_lines;
        continue;
      }
      // Outside the try block: a tokenizer that does not fit the model is not the line's fault.
      if (kind == LineKind::kJson) ids = encode(where, text);
      add_text(where, ids);
    }
    record(source);
  }

  std::string text_of_json_line(const TextSource& source, const TextSource::Line& line, const std::string& where) {
    const std::string bytes = valid_text(std::string(line.bytes), source, line.number, line.offset);
    const Json object = parse_json_line(bytes, where, line.has_newline);
    return text_of_object(JsonCursor(object, where));
  }

  /// @param line, offset  of the first byte of `bytes` in the file
  std::string valid_text(std::string bytes, const TextSource& source, std::size_t line, std::size_t offset) {
    const std::size_t bad = find_invalid_utf8(bytes);
    if (bad == std::string::npos) return bytes;
    if (options_.replace_invalid_utf8) return replace_invalid_utf8(bytes, corpus_.replaced_bytes);
    line += static_cast<std::size_t>(std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bad), '\n'));
    throw Error(ErrorCode::kInput, source.name(),
                "line " + std::to_string(line) + ", byte offset " + std::to_string(offset + bad) + ": found " +
                    printable(std::string_view(bytes).substr(bad, 1)) +
                    ", expected UTF-8 (--invalid-utf8=replace puts U+FFFD in its place)");
  }

  std::vector<std::int32_t> encode(const std::string& name, std::string_view text) const {
    std::vector<std::int32_t> ids = tokenizer_->encode(text);
    for (const std::int32_t id : ids) {
      if (static_cast<std::size_t>(id) < vocabulary_size_) continue;
      throw Error(ErrorCode::kInput, name,
                  "token \"" + printable(tokenizer_->decode({id}), 100) + "\" has id " + std::to_string(id) +
                      ", expected one below the model's " + std::to_string(vocabulary_size_));
    }
    return ids;
  }

  /// A window of a text: the ids [first, first + own), behind BOS unless they begin with it.
  struct Window {
    std::size_t first, own;
  };

  std::vector<Window> windows_of(std::span<const std::int32_t> ids) const {
    std::vector<Window> windows;
    for (std::size_t first = 0; first < ids.size();) {
      const std::size_t own = options_.window - (has_bos() && ids[first] != options_.bos ? 1 : 0);
      if (own > ids.size() - first) break;
      windows.push_back({first, own});
      first += options_.stride == 0 ? own : options_.stride;
    }
    return windows;
  }

  /// Cuts one text into windows.
  void add_text(const std::string& name, std::span<const std::int32_t> ids) {
    const std::vector<Window> windows = windows_of(ids);
    ++texts_;
    longest_ = std::max(longest_, ids.size());
    windows_ += windows.size();
    corpus_.tokens_read += ids.size();
    corpus_.tokens_dropped += ids.size() - (windows.empty() ? 0 : windows.back().first + windows.back().own);
    if (windows.empty()) ++corpus_.short_texts;
    const std::string digest = digest_of(ids);
    const std::size_t last = place(options_.windows_last, windows.size(), windows.size());
    for (std::size_t n = place(options_.windows_first, windows.size(), 0); n < last && !is_full(); ++n) {
      const auto own = ids.subspan(windows[n].first, windows[n].own);
      Document document{.source = name,
                        .window_index = n,
                        .tokens = {},
                        .text_digest = digest,
                        .first = windows[n].first,
                        .own = windows[n].own};
      document.tokens.reserve(options_.window);
      if (own.size() < options_.window) document.tokens.push_back(options_.bos);
      document.tokens.insert(document.tokens.end(), own.begin(), own.end());
      corpus_.documents.push_back(std::move(document));
    }
  }

  /// A bound of --windows as an index in [0, windows]; a negative one counts from the end.
  static std::size_t place(std::optional<std::int64_t> bound, std::size_t windows, std::size_t otherwise) {
    if (!bound) return otherwise;
    const auto count = static_cast<std::int64_t>(windows);
    return static_cast<std::size_t>(std::clamp(*bound < 0 ? *bound + count : *bound, std::int64_t{0}, count));
  }

  [[noreturn]] void fail_without_documents() const {
    std::string where = options_.tokens_file ? options_.tokens_file->native() : options_.texts.front();
    if (options_.texts.size() > 1) where += " and " + std::to_string(options_.texts.size() - 1) + " more";
    std::string problem = "0 documents: ";
    if (texts_ == 0) {
      problem += "found no text";
    } else if (windows_ > 0) {
      problem += "the range of windows selects none of the windows there are";
    } else {
      problem += "the longest of " + std::to_string(texts_) + " texts has " + std::to_string(longest_) +
                 " tokens, expected at least " + std::to_string(options_.window - (has_bos() ? 1 : 0)) +
                 ", those of a window" + (has_bos() ? " behind the begin-of-sequence token" : "");
    }
    throw Error(ErrorCode::kData, where, problem);
  }

  const CorpusOptions& options_;
  const Tokenizer* tokenizer_;
  std::size_t vocabulary_size_;
  Corpus corpus_;
  std::size_t texts_ = 0, longest_ = 0, windows_ = 0;
};

}  // namespace

Corpus read_corpus(const CorpusOptions& options, const Tokenizer* tokenizer, std::size_t vocabulary_size) {
  return Reader(options, tokenizer, vocabulary_size).read();
}

void hold_out(Corpus& corpus, std::size_t count) {
  std::vector<Document> fitted, held;
  const std::size_t documents = corpus.documents.size();
  for (std::size_t n = 0; n < documents; ++n)
    ((n + 1) * count / documents > n * count / documents ? held : fitted).push_back(std::move(corpus.documents[n]));
  std::ranges::move(held, std::back_inserter(fitted));
  corpus.documents = std::move(fitted);
}

}  // namespace kvs
