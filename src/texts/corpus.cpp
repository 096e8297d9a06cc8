// SPDX-License-Identifier: Apache-2.0
#include "texts/corpus.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/utf8.h"
#include "io/digest.h"
#include "io/file_kind.h"
#include "texts/text_reader.h"
#include "texts/text_source.h"
#include "texts/token_line.h"
#include "tokenizer/tokenizer.h"

namespace kvs::inline texts {
namespace {

std::string digest_of(std::span<const std::int32_t> ids) {
  Sha256 digest;
  digest.update(std::as_bytes(ids));
  return digest.finish();
}

class Reader {
 public:
  Reader(const CorpusOptions& options, const Tokenizer* tokenizer, std::size_t vocabulary_size)
      : options_(options),
        tokenizer_(tokenizer),
        vocabulary_size_(vocabulary_size),
        window_(options.window),
        reader_(options.leniency) {}

  Corpus read() {
    check_options();
    corpus_.bos = options_.bos;
    for (const std::string& argument : options_.texts)
      reader_.read(argument, [&](const std::string& where, const std::string& text) {
        add_text(where, encode(where, text));
        return !is_full();
      });
    if (options_.tokens_file) read_tokens_file(*options_.tokens_file);
    corpus_.text_sha256 = reader_.sha256();
    corpus_.replaced_bytes = reader_.replaced_bytes();
    corpus_.skipped_lines = reader_.skipped_lines();
    corpus_.json_like = reader_.json_like();
    if (corpus_.documents.empty() && options_.shorten) shorten();
    if (corpus_.documents.empty()) fail_without_documents();
    return std::move(corpus_);
  }

 private:
  void check_options() const {
    const auto refuse = [](std::string_view option, std::string_view problem) {
      throw Error(ErrorCode::kUsage, "--" + std::string(option), problem);
    };
    if (options_.texts.empty() == !options_.tokens_file) refuse("text", "expected either texts or a file of tokens");
    if (!options_.texts.empty() && tokenizer_ == nullptr) {
      throw Error(ErrorCode::kInternal, "read_corpus", "texts need a tokenizer");
    }
    if (has_bos() && static_cast<std::size_t>(options_.bos) >= vocabulary_size_)
      refuse("bos", "found id " + std::to_string(options_.bos) + ", expected one below the model's " +
                        std::to_string(vocabulary_size_) + ", or off");
    if (window_ < (has_bos() ? 2U : 1U)) refuse("window", "found a window without room for a token");
    if (options_.documents == std::size_t{0}) refuse("documents", "found 0, expected at least 1");
  }

  bool has_bos() const { return options_.bos >= 0; }

  bool is_full() const { return options_.documents && corpus_.documents.size() >= *options_.documents; }

  void read_tokens_file(const std::filesystem::path& path) {
    TextSource source = TextSource::open(path);
    refuse_foreign_text(source.peek(kKindBytes), source.name());
    const auto ids_of = [&](const TextSource::Line& line, const std::string& where) {
      return parse_token_line(line.bytes, where, vocabulary_size_);
    };
    reader_.read_lines(std::move(source), ids_of, [&](const std::string& where, const std::vector<std::int32_t>& ids) {
      add_text(where, ids);
      return !is_full();
    });
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

  /// A window of a text: the ids [first, first + own), after BOS unless they begin with it.
  struct Window {
    std::size_t first, own;
  };

  std::vector<Window> windows_of(std::span<const std::int32_t> ids) const {
    std::vector<Window> windows;
    for (std::size_t first = 0; first < ids.size();) {
      const std::size_t own = window_ - (has_bos() && ids[first] != options_.bos ? 1 : 0);
      if (own > ids.size() - first) break;
      windows.push_back({first, own});
      first += options_.stride == 0 ? own : options_.stride;
    }
    return windows;
  }

  /// Cuts one text into windows. A text that was read before, under any name, is skipped: it would count as independent
  /// documents.
  void add_text(const std::string& name, std::span<const std::int32_t> ids) {
    const std::vector<Window> windows = windows_of(ids);
    const std::string digest = digest_of(ids);
    if (!windows.empty() && !digests_.insert(digest).second) {
      ++corpus_.repeated_texts;
      return;
    }
    ++texts_;
    if (options_.shorten && corpus_.documents.empty() && ids.size() > longest_)
      longest_text_ = {name, {ids.begin(), ids.end()}};
    longest_ = std::max(longest_, ids.size());
    windows_ += windows.size();
    corpus_.tokens_read += ids.size();
    corpus_.tokens_dropped += ids.size() - (windows.empty() ? 0 : windows.back().first + windows.back().own);
    const std::size_t last = place(options_.windows_last, windows.size(), windows.size());
    for (std::size_t n = place(options_.windows_first, windows.size(), 0); n < last && !is_full(); ++n) {
      const auto own = ids.subspan(windows[n].first, windows[n].own);
      Document document{.source = name,
                        .window_index = n,
                        .tokens = {},
                        .text_digest = digest,
                        .first = windows[n].first,
                        .own = windows[n].own};
      document.tokens.reserve(window_);
      if (own.size() < window_) document.tokens.push_back(options_.bos);
      document.tokens.insert(document.tokens.end(), own.begin(), own.end());
      corpus_.documents.push_back(std::move(document));
    }
  }

  /// Cuts the longest text into one window, if it has two tokens.
  void shorten() {
    const auto [name, ids] = std::move(longest_text_);
    if (ids.size() < 2) return;
    window_ = ids.size() + (has_bos() && ids.front() != options_.bos ? 1 : 0);
    corpus_.tokens_read = corpus_.tokens_dropped = 0;
    add_text(name, ids);
  }

  /// Converts a bound of --windows to an index in [0, windows]. A negative bound counts from the end.
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
      problem += "the range of windows selects none";
    } else {
      problem += "the longest of " + std::to_string(texts_) + " texts has " + std::to_string(longest_) +
                 " tokens, expected at least " +
                 (options_.shorten ? "2" : std::to_string(window_ - (has_bos() ? 1 : 0)) + ", those of a window") +
                 (has_bos() ? " behind the begin-of-sequence token" : "");
    }
    throw Error(ErrorCode::kData, where, problem);
  }

  const CorpusOptions& options_;
  const Tokenizer* tokenizer_;
  std::size_t vocabulary_size_, window_;
  TextReader reader_;
  Corpus corpus_;
  std::unordered_set<std::string> digests_;  // of the texts that have windows
  std::size_t texts_ = 0, longest_ = 0, windows_ = 0;
  std::pair<std::string, std::vector<std::int32_t>> longest_text_;  // its name and tokens, if it may be needed
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

}  // namespace kvs::inline texts
