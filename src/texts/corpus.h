// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "texts/text_reader.h"

namespace kvs::inline tokenizer {
class Tokenizer;
}  // namespace kvs::inline tokenizer

namespace kvs::inline texts {

struct CorpusOptions {
  std::vector<std::string> texts;                    // files, folders, *.jsonl, "-" for standard input
  std::optional<std::filesystem::path> tokens_file;  // --tokens-file: one JSON array of ids per line
  std::size_t window = 1024;
  bool shorten = false;                  // if no text has a window, the window is the longest text
  std::size_t stride = 0;                // tokens between the starts of two windows; 0: windows do not overlap
  std::optional<std::size_t> documents;  // maximum number of documents
  std::optional<std::int64_t> windows_first, windows_last;  // --windows A:B of each text; negative: from its end
  std::int32_t bos = -1;                                    // id that every window begins with; -1: none
  TextLeniency leniency = {};
};

/// One window of tokens.
struct Document {
  std::string source;                // the text that it comes from, for messages
  std::size_t window_index = 0;      // index of the window in that text
  std::vector<std::int32_t> tokens;  // exactly CorpusOptions::window ids
  std::string text_digest = {};      // SHA-256 of the whole text's ids: identifies the text under any name
  std::size_t first = 0, own = 0;    // [first, first + own): the window's tokens of the text, without BOS

  /// Returns true if both have tokens of the same text in common, also from a link, a copy or a JSON line.
  bool overlaps(const Document& other) const noexcept {
    return text_digest == other.text_digest && first < other.first + other.own && other.first < first + own;
  }
};

struct Corpus {
  std::vector<Document> documents;                  // order: argument, file name, line, window
  std::vector<std::string> text_sha256;             // one per file read, in order
  std::string tokenizer_sha256;                     // tokenizer_digest(); empty for texts of token ids
  std::size_t tokens_read = 0, tokens_dropped = 0;  // dropped: remainders shorter than a window
  std::size_t replaced_bytes = 0, skipped_lines = 0;
  std::size_t repeated_texts = 0;      // texts with the tokens of an earlier one, which are not read again
  std::vector<std::string> json_like;  // TextReader::json_like()
  std::int32_t bos = -1;               // CorpusOptions::bos
};

/// Reads, tokenises and cuts the texts according to the contract in docs/captures.md. With `bos`, every window begins
/// with that id (counted in the window). It is not inserted if the text has it there.
/// @param tokenizer        may be null if only a tokens file is given
/// @param vocabulary_size  ids must be below it
/// @throws Error kInput (missing, invalid UTF-8 with line and byte offset, bad JSONL line, id with line and column),
/// kUnsupported (Parquet, compressed, PDF, UTF-16: io/file_kind.h), kUsage (FIFO, device, socket), kData ("0
/// documents", with the longest length found and the length needed).
Corpus read_corpus(const CorpusOptions& options, const Tokenizer* tokenizer, std::size_t vocabulary_size);

/// Moves `count` documents, evenly spaced, to the end.
void hold_out(Corpus& corpus, std::size_t count);

}  // namespace kvs::inline texts
