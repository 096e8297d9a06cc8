// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "model/model.h"
#include "run/run_options.h"
#include "texts/corpus.h"
#include "tokenizer/tokenizer.h"

namespace kvs::inline run {

void add_text_options(OptionTable& table);  // --text --tokens-file --window --documents --windows --bos …
/// The options of add_text_options(). They determine the tokens that run through a model.
inline constexpr std::array<std::string_view, 8> kTextOptions = {
    "text", "tokens-file", "window", "documents", "windows", "bos", "invalid-utf8", "skip-bad-lines"};

/// The help of `--bos auto|on|off`.
inline constexpr const char* kBosHelp =
    "put the begin-of-sequence token first in every window, as one of its tokens; auto: if the model's files ask for "
    "it";
BosChoice bos_choice(const Options& options);
/// Returns the `bos` of outputs: the id that texts begin with, or null.
Json bos_json(std::int32_t bos);

/// Returns the values of --invalid-utf8 and --skip-bad-lines.
TextLeniency text_leniency(const Options& options);
/// Prints the effects of these options.
void print_leniency(std::size_t replaced_bytes, std::size_t skipped_lines, bool quiet);

/// Loads the model's tokenizer. Prints where its ids may differ from what its files promise.
std::unique_ptr<Tokenizer> load_tokenizer(const ModelSource& model, const RunOptions& run);
/// Returns nullptr and sets `error` if the model has no tokenizer that can be read.
std::unique_ptr<Tokenizer> find_tokenizer(const ModelSource& model, std::string& error);

/// Names of the options that select documents; empty: no such option.
struct CorpusOptionNames {
  std::string text = "text", tokens_file = "tokens-file", window = "window", stride = "stride", documents = "documents",
              windows = "windows";
  std::string default_text = {};  // read without the option `text`; empty: it is required
  bool shorten = false;           // CorpusOptions::shorten
};
/// Reads and cuts the texts. Prints what was dropped or replaced. Prints a note, not an error, if the rotations of a
/// document use more positions than the model's context.
/// @param positions  returns the positions used by a document of a given number of tokens; empty: that number
Corpus load_corpus(const Options& options, const RunOptions& run, const ModelSource& model,
                   const std::function<std::size_t(std::size_t)>& positions = {}, const CorpusOptionNames& names = {});
/// Returns the documents' token lists.
std::vector<std::vector<std::int32_t>> tokens_of(const Corpus& corpus);
/// Returns the token lists, taking one document of each text in turn, so that the first documents cover every text.
std::vector<std::vector<std::int32_t>> documents_in_turn(const Corpus& corpus);

}  // namespace kvs::inline run
