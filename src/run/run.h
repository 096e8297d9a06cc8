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
#include "results/head.h"
#include "run/estimate.h"
#include "run/finished.h"
#include "run/identity.h"
#include "run/model_session.h"
#include "run/outputs.h"
#include "run/progress.h"
#include "run/text_input.h"

namespace kvs {

/// What a run writes, and what it keeps for --resume until that is in place.
struct RunOutputs {
  enum class Kind { kResult, kConfig };  // where the main output says how it was made: / or /calibration
  enum class State { kNone, kJournal, kCheckpoint };
  std::filesystem::path main;                      // is written last
  std::vector<std::filesystem::path> others = {};  // go with it: figures, tensors, configs
  Kind kind = Kind::kResult;
  State state = State::kNone;
  std::optional<std::filesystem::path> holder = {};  // the output that the lock and the state lie beside: `main`
};

/// The life of a command that runs a model, which goes through it from top to bottom:
///
///   take_outputs   checks the outputs and locks them
///   open_model     opens the model's files
///   read_texts     reads and cuts the texts; from here on there is an identity, to which the command may add
///   is_finished    ends a run with --resume that has finished before
///   load           loads the weights, checks that ranks agree, opens the journal or the checkpoint
///   …              the command's own work
///   write, print   puts the outputs in place, removes the state, prints the result
///
/// Each step may be left out. Of several ranks rank 0 owns outputs and state.
class Run {
 public:
  /// @param options  must outlive the run
  explicit Run(const Options& options);

  const Options& options() const noexcept { return options_; }
  const RunOptions& settings() const noexcept { return settings_; }
  bool quiet() const noexcept { return settings_.quiet; }
  bool is_root() const noexcept { return settings_.is_root(); }
  Ranks& ranks() const noexcept { return *settings_.ranks; }

  /// @throws as check_outputs and OutputLock
  void take_outputs(RunOutputs outputs);
  void open_model() { source_ = kvs::open_model(options_); }
  /// @param positions  as load_corpus
  void read_texts(const std::function<std::size_t(std::size_t)>& positions = {});
  /// Prints what the run before has written, if there is nothing to do.
  /// @param written  the files beside the main output, by what that holds; empty: all of RunOutputs::others
  bool is_finished(const OtherOutputs& written = {});
  /// @throws as load_model, require_agreement, open_journal
  void load();
  /// load() in two steps, for runs whose states come from a capture, with or without a model.
  void load_weights();
  void start_on(const Backend& backend);

  bool has_model() const noexcept { return source_ || session_.source; }
  /// Of the model, whether its weights are loaded or not.
  const ModelSource& model() const noexcept { return session_.source ? *session_.source : *source_; }
  const ModelConfig& config() const noexcept { return model().config(); }
  const Corpus& corpus() const noexcept { return corpus_; }
  const std::vector<std::vector<std::int32_t>>& documents() const noexcept { return documents_; }
  /// Tokens of a document.
  std::size_t tokens() const noexcept { return documents_.front().size(); }
  const ModelSession& session() const noexcept { return session_; }
  Decoder& decoder() const noexcept { return *session_.decoder; }
  Backend& backend() const noexcept { return *session_.backend; }

  /// What a resumed run must have in common with the one before.
  Json& identity() noexcept { return identity_; }
  const Json& identity() const noexcept { return identity_; }
  /// The journal, on rank 0; nullptr elsewhere and without one.
  Journal* journal() noexcept { return journal_ ? &*journal_ : nullptr; }
  Checkpoint& checkpoint() noexcept { return *checkpoint_; }
  /// The state to go on from, on rank 0.
  std::optional<Checkpoint::State> saved_state();

  void print_estimate(const Estimate& estimate) const { kvs::print_estimate(estimate, backend(), settings_); }
  /// A line on stderr that begins with "note: ", unless quiet.
  void note(const std::string& text) const { print_note("note: " + text, quiet()); }

  Provenance provenance() const { return kvs::provenance(options_, settings_, corpus_); }
  /// The members that results of a run on texts begin with.
  /// @param window  tokens of the documents that the model reads
  ResultHead result_head(const std::string& format, std::size_t window) const;
  InputDigests input_digests() const;

  /// Puts the outputs in place, if there are any, and removes the state.
  /// @param staged  files that take their places with these
  void write(const Json& result, const std::function<RunFigures()>& figures = {});
  void write(OutputSet& staged, const Json& result, const std::function<RunFigures()>& figures = {});
  void remove_state();
  void print(const Json& result, const std::string& text) const { print_result(settings_, result, text); }
  /// write() and print().
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

}  // namespace kvs
