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

namespace kvs {

void add_text_options(OptionTable& table);  // --text --tokens-file --window --documents --windows --bos …
/// The options of add_text_options: what says which tokens run through a model.
inline constexpr std::array<std::string_view, 8> kTextOptions = {
    "text", "tokens-file", "window", "documents", "windows", "bos", "invalid-utf8", "skip-bad-lines"};

/// The help of `--bos auto|on|off`.
inline constexpr const char* kBosHelp =
    "the model's begin-of-sequence token before every window, counted in it; auto: where the model's files ask for it";
BosChoice bos_choice(const Options& options);
/// The `bos` of outputs: the id that texts begin with, or null.
Json bos_json(std::int32_t bos);

/// What --invalid-utf8 and --skip-bad-lines say.
TextLeniency text_leniency(const Options& options);
/// Prints what these options have changed.
void print_leniency(std::size_t replaced_bytes, std::size_t skipped_lines, bool quiet);

/// The model's tokenizer; says where its ids may be others than its files promise.
std::unique_ptr<Tokenizer> load_tokenizer(const ModelSource& model, const RunOptions& run);

/// The options that say which documents are read; empty: there is none.
struct CorpusOptionNames {
  std::string text = "text", tokens_file = "tokens-file", window = "window", stride = "stride", documents = "documents",
              windows = "windows";
};
/// Reads and cuts the texts, and says what was dropped or replaced.
/// Documents whose rotations use more positions than the model's context has are a note, not an error.
/// @param positions  of a document of so many tokens; empty: as many
Corpus load_corpus(const Options& options, const RunOptions& run, const ModelSource& model,
                   const std::function<std::size_t(std::size_t)>& positions = {}, const CorpusOptionNames& names = {});
/// The documents' token lists alone.
std::vector<std::vector<std::int32_t>> tokens_of(const Corpus& corpus);
/// The token lists with the texts in turn, so that the first documents are of every kind.
std::vector<std::vector<std::int32_t>> documents_in_turn(const Corpus& corpus);

}  // namespace kvs
