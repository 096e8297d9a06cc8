// SPDX-License-Identifier: Apache-2.0
#include "run/text_input.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "run/progress.h"
#include "tokenizer/tokenizer_digest.h"

namespace kvs::inline run {
namespace {

constexpr std::int64_t kMaxDocuments = std::int64_t{1} << 40;

/// Checks that there is one source of tokens, unless the command needs none.
void check_text_options(const Options& options) {
  const bool tokens = options.has("tokens-file");
  if (options.has("invalid-utf8")) (void)options.choice("invalid-utf8", std::array<std::string_view, 1>{"replace"});
  if (tokens) refuse_options(options, {"text", "invalid-utf8"}, "--tokens-file");
  if (std::ranges::count(options.list("text"), "-") > 1) throw Error(ErrorCode::kUsage, "--text", "found - twice");
  if (tokens || options.has("text")) return;
  for (const char* other : {"capture", "task", "prompts", "trace-from"})
    if (options.has(other)) return;
  miss_option("text", "PATH");
}

void print_notes(const Tokenizer& tokenizer, bool quiet) {
  for (const std::string& note : tokenizer.notes()) print_note("note: " + note, quiet);
}

/// @return nullptr if no tokenizer is needed. With a file of tokens the tokenizer may be unreadable; the id that
/// windows begin with is unknown then.
std::unique_ptr<Tokenizer> tokenizer_of(const ModelSource& model, bool has_tokens, BosChoice bos, bool quiet) {
  if (has_tokens && bos == BosChoice::kOff) return nullptr;
  if (!has_tokens || bos == BosChoice::kOn) return model.load_tokenizer();
  std::string error;
  auto tokenizer = find_tokenizer(model, error);
  if (!tokenizer)
    print_note("note: no begin-of-sequence token goes before the windows of --tokens-file: " + error, quiet);
  return tokenizer;
}

CorpusOptions corpus_options(const Options& options, const RunOptions& run, const CorpusOptionNames& names) {
  CorpusOptions corpus;
  corpus.texts = options.list(names.text);
  if (corpus.texts.empty() && !names.default_text.empty()) corpus.texts = {names.default_text};
  corpus.shorten = names.shorten;
  if (!names.tokens_file.empty() && options.has(names.tokens_file))
    corpus.tokens_file = options.text(names.tokens_file);
  if (corpus.texts.empty() == !corpus.tokens_file)
    throw Error(ErrorCode::kUsage, "--" + names.text,
                std::string("found ") + (corpus.tokens_file ? "--tokens-file as well" : "nothing") +
                    ", expected either --text or --tokens-file");
  if (!run.ranks->alone() && std::ranges::find(corpus.texts, "-") != corpus.texts.end())
    throw Error(ErrorCode::kUsage, "--" + names.text, "found - with several ranks, expected files that each can read");
  corpus.window = options.count(names.window, 2, kMaxTokens);
  if (!names.stride.empty() && options.has(names.stride))
    corpus.stride = options.count(names.stride, 1, corpus.window - 1);
  if (!names.documents.empty() && options.has(names.documents))
    corpus.documents = options.count(names.documents, 1, kMaxDocuments);
  if (!names.windows.empty() && options.has(names.windows))
    std::tie(corpus.windows_first, corpus.windows_last) = options.window_range(names.windows);
  corpus.leniency = text_leniency(options);
  return corpus;
}

/// Prints what was dropped, replaced or added while the texts were read.
/// @param says_bos  names the begin-of-sequence token
void print_reading(const Corpus& read, std::size_t window, bool says_bos, bool quiet) {
  if (read.tokens_dropped > 0)
    print_note("text: " + std::to_string(read.documents.size()) +
                   (read.documents.size() == 1 ? " document of " : " documents of ") + std::to_string(window) +
                   " tokens; " + std::to_string(read.tokens_dropped) + " of " + std::to_string(read.tokens_read) +
                   " tokens left over at the ends of texts",
               quiet);
  if (read.bos >= 0 && says_bos)
    print_note("text: every window begins with the begin-of-sequence token, id " + std::to_string(read.bos) +
                   ", one of its " + std::to_string(window) + " tokens (--bos)",
               quiet);
  print_leniency(read.replaced_bytes, read.skipped_lines, quiet);
  if (read.repeated_texts > 0)
    print_note("note: " + std::to_string(read.repeated_texts) +
                   (read.repeated_texts == 1 ? " text has" : " texts have") +
                   " the tokens of an earlier one: each text is read once",
               quiet);
  for (const std::string& name : read.json_like)
    print_note(
        "note: " + name + " begins like lines of JSON and is read as one text; expected the name *.jsonl for lines",
        quiet);
}

}  // namespace

BosChoice bos_choice(const Options& options) {
  static constexpr std::string_view kChoices[] = {"auto", "on", "off"};
  const std::string& choice = options.choice("bos", kChoices);
  return choice == "auto" ? BosChoice::kAuto : choice == "on" ? BosChoice::kOn : BosChoice::kOff;
}

Json bos_json(std::int32_t bos) { return bos < 0 ? Json() : Json(bos); }

TextLeniency text_leniency(const Options& options) {
  return {.replace_invalid_utf8 = options.has("invalid-utf8"), .skip_bad_lines = options.flag("skip-bad-lines")};
}

void print_leniency(std::size_t replaced_bytes, std::size_t skipped_lines, bool quiet) {
  if (replaced_bytes > 0)
    print_note("text: replaced " + std::to_string(replaced_bytes) + " bytes of invalid UTF-8", quiet);
  if (skipped_lines > 0) print_note("text: skipped " + std::to_string(skipped_lines) + " bad lines", quiet);
}

void add_text_options(OptionTable& table) {
  table.group("Text")
      .list("text", "PATH", "text file, folder, *.jsonl with a `text` field, or - for standard input; may repeat")
      .value("tokens-file", "FILE", "instead of --text: one JSON array of token ids per line")
      .value("window", "T", "tokens per document; a text is cut into consecutive windows", "1024")
      .from(2, kMaxTokens)
      .value("documents", "N", "maximum number of documents (default: all)")
      .from(1, kMaxDocuments)
      .value("windows", "A:B", "use windows A to B-1 of each text; negative numbers count from its end (default: all)")
      .value("bos", "auto|on|off", kBosHelp, "auto")
      .value("invalid-utf8", "replace", "replace invalid UTF-8 by U+FFFD and count it, instead of stopping")
      .flag("skip-bad-lines", "skip and count malformed JSONL lines, instead of stopping")
      .check(check_text_options);
}

std::unique_ptr<Tokenizer> find_tokenizer(const ModelSource& model, std::string& error) {
  try {
    return model.load_tokenizer();
  } catch (const Error& found) {
    if (found.code() != ErrorCode::kInput && found.code() != ErrorCode::kUnsupported) throw;
    error = found.what();
    return nullptr;
  }
}

std::unique_ptr<Tokenizer> load_tokenizer(const ModelSource& model, const RunOptions& run) {
  std::unique_ptr<Tokenizer> tokenizer = model.load_tokenizer();
  print_notes(*tokenizer, run.quiet);
  return tokenizer;
}

Corpus load_corpus(const Options& options, const RunOptions& run, const ModelSource& model,
                   const std::function<std::size_t(std::size_t)>& positions, const CorpusOptionNames& names) {
  CorpusOptions corpus = corpus_options(options, run, names);
  const BosChoice bos = bos_choice(options);
  const auto tokenizer = tokenizer_of(model, corpus.tokens_file.has_value(), bos, run.quiet);
  if (tokenizer) {
    corpus.bos = chosen_bos(*tokenizer, bos);
    print_notes(*tokenizer, run.quiet);
  }
  Corpus read = read_corpus(corpus, tokenizer.get(), model.config().vocabulary);
  if (tokenizer && !corpus.texts.empty()) read.tokenizer_sha256 = tokenizer_digest(*tokenizer);
  corpus.window = read.documents.front().tokens.size();
  print_reading(read, corpus.window, names.windows == CorpusOptionNames().windows, run.quiet);
  if (model.config().exceeds_context(positions ? positions(corpus.window) : corpus.window))
    print_note("text: windows of " + std::to_string(corpus.window) + " tokens are longer than the model's context of " +
                   std::to_string(model.config().context),
               run.quiet);
  return read;
}

std::vector<std::vector<std::int32_t>> tokens_of(const Corpus& corpus) {
  std::vector<std::vector<std::int32_t>> tokens;
  for (const Document& document : corpus.documents) tokens.push_back(document.tokens);
  return tokens;
}

std::vector<std::vector<std::int32_t>> documents_in_turn(const Corpus& corpus) {
  std::vector<std::pair<std::size_t, const Document*>> order;
  std::map<std::string, std::size_t> seen;
  for (const Document& document : corpus.documents) order.emplace_back(seen[document.source]++, &document);
  std::ranges::stable_sort(order, {}, &std::pair<std::size_t, const Document*>::first);
  std::vector<std::vector<std::int32_t>> documents;
  documents.reserve(order.size());
  for (const auto& [turn, document] : order) documents.push_back(document->tokens);
  return documents;
}

}  // namespace kvs::inline run
