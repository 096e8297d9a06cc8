#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/config/config.h"
#include "cli/common/options.h"
#include "cli/common/program_ranks.h"
#include "io/json.h"
#include "model/decoder.h"
#include "model/model.h"
#include "states/capture_source.h"
#include "texts/corpus.h"
#include "tokenizer/tokenizer.h"

namespace kvs {

/// The options that every command shares, in groups.
void add_model_options(OptionTable& table);  // --model --device --dtype --threads --weights-budget
void add_text_options(OptionTable& table);   // --text --tokens-file --window --documents --windows --bos …
void add_seed_option(OptionTable& table, const std::string& help);  // --seed, where something is drawn
void add_report_options(OptionTable& table);                        // --quiet --json, where nothing is written
void add_run_options(OptionTable& table, bool resumable);           // these, --force --no-lock (--resume)

/// The help of `--bos auto|on|off`.
inline constexpr const char* kBosHelp =
    "the model's begin-of-sequence token before every window, counted in it; auto: where the model's files ask for it";
BosChoice bos_choice(const Options& options);
/// The `bos` of outputs: the id that texts begin with, or null.
Json bos_json(std::int32_t bos);

/// Refuses `--text -`, which can be read once, where `reader` reads the text a second time. @throws Error kUsage
void refuse_standard_input(const Options& options, const std::string& reader);
/// What --invalid-utf8 and --skip-bad-lines say.
TextLeniency text_leniency(const Options& options);
/// Says what they did.
void remark_leniency(std::size_t replaced_bytes, std::size_t skipped_lines, bool quiet);

/// How a command should behave.
struct RunOptions {
  bool force = false, resume = false, quiet = false, json = false, lock = true;
  std::int64_t seed = 0;
  Ranks* ranks = &program_ranks();

  /// Whether this process owns the outputs, what is kept for --resume, and what is said: it alone, or rank 0.
  bool leads() const noexcept { return ranks->leads(); }
  /// Whether files that go with the main output may be replaced: a run that was killed may have left them.
  bool replace() const noexcept { return force || resume; }
};
RunOptions run_options(const Options& options);

/// A model that is ready to run, and what it came from.
struct ModelSession {
  std::unique_ptr<ModelSource> source;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  std::unique_ptr<Decoder> decoder;

  const ModelConfig& config() const noexcept { return source->config(); }
};

/// Opens and checks the files of --model; loads no weight.
std::unique_ptr<ModelSource> open_model(const Options& options);
/// Makes the backend of --device, --dtype and --threads.
std::unique_ptr<Backend> open_backend(const Options& options);
/// Refuses ranks that differ from rank 0 in `identity` (run_identity() and what else makes the run), device, number
/// type or threads. To be called by all of them before the first document and before anything is written.
/// @throws Error kConflict on rank 0, naming rank, host and what differs
void require_agreement(const RunOptions& run, const Json& identity, const Backend& backend);
/// Loads the weights, with a progress bar, and warns if layers will be streamed.
ModelSession load_model(std::unique_ptr<ModelSource> source, const Options& options, const RunOptions& run);

/// The options of add_text_options: what says which tokens run through a model.
inline constexpr std::array<std::string_view, 8> kTextOptions = {
    "text", "tokens-file", "window", "documents", "windows", "bos", "invalid-utf8", "skip-bad-lines"};
/// Options that need --capture.
inline constexpr std::array<std::string_view, 2> kCaptureOptions = {"allow-incomplete", "skip-corrupt"};
/// The layers that --layers names among those a capture holds (ascending); all of them for "all".
std::vector<std::size_t> captured_layers(const Options& options, std::span<const std::int32_t> stored);

/// The states of an opened capture; says if nothing can check them, and how many documents --skip-corrupt leaves out.
std::unique_ptr<CaptureSource> open_capture_source(CaptureReader& reader, Backend& backend, const Options& options,
                                                   const RunOptions& run);

/// The model's tokenizer; says where its ids may be others than its files promise.
std::unique_ptr<Tokenizer> load_tokenizer(const ModelSource& model, const RunOptions& run);

/// The options that say which documents are read; empty: there is none.
struct CorpusOptionNames {
  std::string text = "text", tokens_file = "tokens-file", window = "window", stride = "stride", documents = "documents",
              windows = "windows";
};
/// Reads and cuts the texts, and says what was dropped or replaced.
/// Documents whose rotations use more positions than the model's context has are a remark, not an error.
/// @param positions  of a document of so many tokens; empty: as many
Corpus load_corpus(const Options& options, const RunOptions& run, const ModelSource& model,
                   const std::function<std::size_t(std::size_t)>& positions = {}, const CorpusOptionNames& names = {});
/// The documents' token lists alone.
std::vector<std::vector<std::int32_t>> tokens_of(const Corpus& corpus);

/// The same with the texts in turn, so that the first documents are of every kind.
std::vector<std::vector<std::int32_t>> documents_in_turn(const Corpus& corpus);

/// --other-weights, for commands with --config or --costs; open_model() obeys it.
void add_other_weights(OptionTable& table);
/// SHA-256 of the configs that a command reads (which hold those of their files), as outputs record them:
/// `config_sha256`, of several a list, and `costs_sha256`; with --other-weights `config_model_sha256`, too, the models
/// that they were made for.
Json digests_of_configs(const Options& options);
/// What a resumed run must have in common with the one before: every option that changes results (not --threads,
/// --resume, --force, --quiet, --json, --no-lock, and not where things lie on disk), the processor's instruction set,
/// whose products round in another order, the libraries that round (kernels/libraries.h), the model, the texts, what a
/// tokenizer made of them, and the configs. A command adds what else it reads, each as a member whose name ends in
/// `_sha256`, and its output records the same (Provenance::inputs).
Json run_identity(const Options& options, const ModelSource& model, const Corpus& corpus);
/// The same of a run on a capture. @param corpus  that it reads as well
Json run_identity(const Options& options, CaptureReader& capture, const Corpus& corpus = {});
/// What --capture says of its texts: `bos` and `tokenizer_sha256`, each only where its manifest or journal has it.
/// @throws Error kInput for a value that no run writes
Json texts_of_capture(const Options& options, const CaptureReader& capture);
/// Adds the library of decompositions, to the identity of a run that needs them: loading it takes address space.
void add_decompositions(Json& identity);
/// SHA-256 of all documents' ids.
std::string digest_of_tokens(const Corpus& corpus);
Provenance provenance(const Options& options, const RunOptions& run, const Corpus& corpus);

}  // namespace kvs
