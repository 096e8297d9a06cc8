// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/file.h"
#include "io/journal.h"
#include "io/output_set.h"
#include "model/model_json.h"
#include "results/head.h"
#include "run/estimate.h"
#include "run/finished.h"
#include "run/identity.h"
#include "run/model_session.h"
#include "run/outputs.h"
#include "run/progress.h"
#include "run/text_input.h"
#include "version.h"

namespace kvs::inline run {

/// The outputs of a run, and the state that the run keeps for --resume until the outputs are in place.
struct RunOutputs {
  enum class Kind { kResult, kConfig };  // location of the provenance in the main output: / or /calibration
  enum class State { kNone, kJournal, kCheckpoint };
  std::filesystem::path main;                      // written last
  std::vector<std::filesystem::path> others = {};  // further files: figures, tensors, configs
  Kind kind = Kind::kResult;
  State state = State::kNone;
  std::optional<std::filesystem::path> holder = {};  // the lock and the state are next to this output; default: `main`
};

/// Returns the outputs of a calibration: a config, its tensors next to it, and sums for --resume.
RunOutputs config_with_tensors(const std::filesystem::path& config);

/// Adds the options of commands that run a model on texts: add_model_options(), add_text_options(), add_run_options().
void add_model_run_options(OptionTable& table, bool resumable);

/// The steps of a command that runs a model, in order:
///
///   take_outputs   checks the outputs and locks them
///   open_model     opens the model's files
///   read_texts     reads and splits the texts; from here on the identity exists, and the command may add to it
///   is_finished    ends a run with --resume if it has finished before
///   load           loads the weights, checks that ranks agree, opens the journal or the checkpoint
///   …              the command's own work
///   write, print   puts the outputs in place, removes the state, prints the result
///
/// All steps are optional. If there are several ranks, rank 0 owns the outputs and the state.
class Run {
 public:
  /// @param options  must outlive the run
  explicit Run(const Options& options);

  const Options& options() const noexcept { return options_; }
  const RunOptions& settings() const noexcept { return settings_; }
  bool quiet() const noexcept { return settings_.quiet; }
  bool is_root() const noexcept { return settings_.is_root(); }
  Ranks& ranks() const noexcept { return *settings_.ranks; }

  /// @throws the errors of check_outputs() and OutputLock
  void take_outputs(RunOutputs outputs);
  /// Takes the outputs that the options name, the main one first; none: the run writes nothing. Only a run with --out
  /// keeps a journal.
  void take_named_outputs(const std::vector<std::filesystem::path>& named);
  void open_model() { source_ = kvs::open_model(options_); }
  /// @param positions, names  as in load_corpus()
  void read_texts(const std::function<std::size_t(std::size_t)>& positions = {}, const CorpusOptionNames& names = {});
  /// Sets the identity of a run that reads texts by itself. @param text_sha256  of their files
  void identify(const std::vector<std::string>& text_sha256);
  /// Returns true if a previous run has finished, and prints its result.
  /// @param written  returns the files written in addition to the main output, given its content; empty: all of
  /// RunOutputs::others
  bool is_finished(const OtherOutputs& written = {});
  /// @throws the errors of load_model(), require_agreement() and open_journal()
  void load();
  /// load() in two steps, for runs whose states come from a capture, with or without a model.
  void load_weights();
  void start_on(const Backend& backend);

  bool has_model() const noexcept { return source_ || session_.source; }
  /// Returns the model. The weights need not be loaded.
  const ModelSource& model() const noexcept { return session_.source ? *session_.source : *source_; }
  const ModelConfig& config() const noexcept { return model().config(); }
  const Corpus& corpus() const noexcept { return corpus_; }
  const std::vector<std::vector<std::int32_t>>& documents() const noexcept { return documents_; }
  /// Returns the number of tokens of one document.
  std::size_t tokens() const noexcept { return documents_.front().size(); }
  const ModelSession& session() const noexcept { return session_; }
  Decoder& decoder() const noexcept { return *session_.decoder; }
  Backend& backend() const noexcept { return *session_.backend; }

  /// Returns the members that a resumed run must share with the previous run.
  Json& identity() noexcept { return identity_; }
  const Json& identity() const noexcept { return identity_; }
  /// Returns the journal on rank 0; nullptr on other ranks or if there is no journal.
  Journal* journal() noexcept { return journal_ ? &*journal_ : nullptr; }
  Checkpoint& checkpoint() noexcept { return *checkpoint_; }
  /// Returns the state to resume from, on rank 0 only.
  std::optional<Checkpoint::State> saved_state();

  void print_estimate(const Estimate& estimate) const { kvs::print_estimate(estimate, backend(), settings_); }
  /// Prints "note: " and `text` on stderr, unless quiet.
  void note(const std::string& text) const { print_note("note: " + text, quiet()); }

  Provenance provenance() const { return kvs::provenance(options_, settings_, corpus_); }
  /// Returns the first members of the result of a run on texts.
  /// @param window  tokens of the documents that the model reads
  ResultHead result_head(const std::string& format, std::size_t window) const;
  InputDigests input_digests() const;
  /// Sets the members of a result that describe the run: dtype, model, command, tool_version and inputs.
  /// @param window  as in result_head()
  template <class Result>
  void describe(Result& result, std::size_t window) const {
    result.dtype = name_of(backend().compute_type());
    result.model = model_record(config(), model().sha256(), window);
    result.command = options_.command();
    result.tool_version = kToolVersion;
    result.inputs = input_digests();
  }

  /// Puts the outputs in place, if there are any, and removes the state.
  /// @param staged  files that are put in place together with the outputs
  void write(const Json& result, const std::function<RunFigures()>& figures = {});
  void write(OutputSet& staged, const Json& result, const std::function<RunFigures()>& figures = {});
  void remove_state();
  void print(const Json& result, const std::string& text) const { print_result(settings_, result, text); }
  /// Calls write() and print().
  void finish(const Json& result, const std::string& text, const std::function<RunFigures()>& figures = {});

 private:
  const std::filesystem::path& holder() const noexcept { return outputs_->holder ? *outputs_->holder : outputs_->main; }
  bool has_state(RunOutputs::State state) const noexcept { return outputs_ && outputs_->state == state; }

  const Options& options_;
  RunOptions settings_;
  std::optional<RunOutputs> outputs_;
  std::optional<OutputLock> lock_;
  std::unique_ptr<ModelSource> source_;
  Corpus corpus_;
  std::vector<std::vector<std::int32_t>> documents_;
  Json identity_;
  ModelSession session_;
  std::optional<Journal> journal_;
  std::optional<Checkpoint> checkpoint_;
};

}  // namespace kvs::inline run
