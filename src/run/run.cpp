// SPDX-License-Identifier: Apache-2.0
#include "run/run.h"

#include <utility>

#include "calibrate/config/config.h"
#include "io/json.h"
#include "run/kept_state.h"
#include "run/outputs.h"

namespace kvs::inline run {

RunOutputs config_with_tensors(const std::filesystem::path& config) {
  return {.main = config,
          .others = {sibling_path(config, ".safetensors")},
          .kind = RunOutputs::Kind::kConfig,
          .state = RunOutputs::State::kCheckpoint};
}

void add_model_run_options(OptionTable& table, bool resumable) {
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, resumable);
}

Run::Run(const Options& options) : options_(options), settings_(run_options(options)) {}

void Run::take_outputs(RunOutputs outputs) {
  outputs_ = std::move(outputs);
  check_outputs(outputs_->main, outputs_->others, options_, settings_);
  std::vector<std::filesystem::path> locked = outputs_->others;
  locked.push_back(outputs_->main);
  lock_.emplace(holder(), settings_.lock, locked);
}

void Run::take_named_outputs(const std::vector<std::filesystem::path>& named) {
  if (named.empty()) return;
  take_outputs({.main = named.front(),
                .others = {named.begin() + 1, named.end()},
                .state = options_.has("out") ? RunOutputs::State::kJournal : RunOutputs::State::kNone});
}

void Run::identify(const std::vector<std::string>& text_sha256) {
  Corpus read;
  read.text_sha256 = text_sha256;
  identity_ = run_identity(options_, model(), read);
}

void Run::read_texts(const std::function<std::size_t(std::size_t)>& positions, const CorpusOptionNames& names) {
  corpus_ = load_corpus(options_, settings_, *source_, positions, names);
  documents_ = tokens_of(corpus_);
  identity_ = run_identity(options_, *source_, corpus_);
}

bool Run::is_finished(const OtherOutputs& written) {
  if (!outputs_) return false;
  const bool is_config = outputs_->kind == RunOutputs::Kind::kConfig;
  const auto is_same = [&](const Json& output) {
    return is_of_run(output, is_config ? "/calibration" : "", options_, identity_);
  };
  const auto all = [&](const Json&) { return outputs_->others; };
  if (!kvs::is_finished(outputs_->main, holder(), settings_, is_same, written ? written : OtherOutputs(all)))
    return false;
  const std::string name = outputs_->main.string();
  print(is_config ? read_config(outputs_->main) : parse_json(read_text_file(outputs_->main, kMaxResultBytes), name),
        name + ": finished before\n");
  return true;
}

void Run::load() {
  if (has_state(RunOutputs::State::kJournal)) check_journal(holder(), settings_);
  load_weights();
  start_on(*session_.backend);
}

void Run::load_weights() { session_ = load_model(std::move(source_), options_, settings_); }

void Run::start_on(const Backend& backend) {
  require_agreement(settings_, identity_, backend);
  if (has_state(RunOutputs::State::kCheckpoint) || has_state(RunOutputs::State::kJournal))
    identity_["device"] = backend.device();
  if (has_state(RunOutputs::State::kCheckpoint)) checkpoint_.emplace(holder(), identity_);
  if (has_state(RunOutputs::State::kJournal) && is_root())
    journal_.emplace(open_journal(holder(), identity_, settings_));
}

std::optional<Checkpoint::State> Run::saved_state() {
  return is_root() ? load_checkpoint(*checkpoint_, holder(), settings_) : std::nullopt;
}

ResultHead Run::result_head(const std::string& format, std::size_t window) const {
  Provenance record = provenance();
  return {.format = format,
          .model = model_record(config(), model().sha256(), window),
          .command = std::move(record.command),
          .tool_version = std::move(record.tool_version),
          .text_sha256 = std::move(record.text_sha256),
          .bos = bos_record(corpus_.bos)};
}

InputDigests Run::input_digests() const { return from_json<InputDigests>({provenance().inputs, "inputs"}); }

void Run::write(const Json& result, const std::function<RunFigures()>& figures) {
  OutputSet staged;
  write(staged, result, figures);
}

void Run::write(OutputSet& staged, const Json& result, const std::function<RunFigures()>& figures) {
  if (!outputs_) return;
  const std::function<RunFigures()> none = [] { return RunFigures(); };
  write_outputs(staged, outputs_->main, result, settings_, figures ? figures : none);
  remove_state();
}

void Run::remove_state() {
  if (journal_) journal_->remove();
  if (checkpoint_) checkpoint_->remove();
}

void Run::finish(const Json& result, const std::string& text, const std::function<RunFigures()>& figures) {
  write(result, figures);
  print(result, text);
}

}  // namespace kvs::inline run
