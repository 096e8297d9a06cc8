#include "cli/kvcalibrate/elite_input.h"

#include <algorithm>

#include "cli/kvcalibrate/elite_plan.h"
#include "core/error.h"
#include "model/config_json.h"
#include "states/capture_run.h"
#include "states/capture_source.h"
#include "states/held_source.h"
#include "states/live_source.h"

namespace kvs {
namespace {

constexpr std::size_t kHeldBytes = std::size_t{2} << 30;  // q_pre and k_pre that p = 1 keeps between passes

void open_capture(const Options& options, const RunOptions& run, EliteInput& input, bool whiten) {
  const std::filesystem::path path = options.text("capture");
  input.reader = CaptureReader::open(
      path, {.allow_incomplete = options.flag("allow-incomplete"), .skip_corrupt = options.flag("skip-corrupt")});
  const CaptureHeader& header = input.reader->header();
  for (const StateKind kind : {StateKind::kQPre, StateKind::kKPre})
    if (!header.states.contains(kind))
      throw Error(ErrorCode::kInput, path.string(),
                  "found no " + std::string(name_of(kind)) + ", expected q_pre and k_pre");
  if (options.has("model")) {
    input.model = open_model(options);
    if (input.model->sha256() != header.model_sha256)
      throw Error(ErrorCode::kConflict, path.string() + ": model_sha256",
                  "found " + header.model_sha256 + ", expected that of --model, " + input.model->sha256());
    input.config = input.model->config();
  } else {
    input.config = model_config_of(header);
  }
  input.model_sha256 = header.model_sha256;
  if (whiten) input.corpus = load_corpus(options, run, *input.model);
  input.identity = run_identity(options, *input.reader, input.corpus);
  if (input.model) input.identity["model_config"] = config_json(input.config);
}

void open_live(const Options& options, const RunOptions& run, EliteInput& input) {
  input.model = open_model(options);
  input.config = input.model->config();
  input.model_sha256 = input.model->sha256();
  input.corpus = load_corpus(options, run, *input.model);
  input.identity = run_identity(options, *input.model, input.corpus);
}

}  // namespace

EliteInput open_elite_input(const Options& options, const RunOptions& run, bool whiten) {
  EliteInput input;
  if (options.has("capture")) {
    open_capture(options, run, input, whiten);
  } else {
    open_live(options, run, input);
  }
  if (has_factors(options)) add_decompositions(input.identity);
  return input;
}

void start_elite_source(EliteInput& input, const Options& options, const RunOptions& run, int norm) {
  if (input.reader) {
    input.backend = open_backend(options);
    input.source = open_capture_source(*input.reader, *input.backend, options, run);
    return;
  }
  input.session = load_model(std::move(input.model), options, run);
  input.source = std::make_unique<LiveSource>(*input.session.decoder, tokens_of(input.corpus));
  if (norm == 1) input.held = std::make_unique<HeldSource>(*input.source, kHeldBytes);
}

}  // namespace kvs
