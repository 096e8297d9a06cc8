// SPDX-License-Identifier: Apache-2.0
#include "cli/kvcalibrate/elite_input.h"

#include "calibrate/common/layer_options.h"
#include "calibrate/elitekv/plan.h"
#include "core/error.h"
#include "model/config_json.h"
#include "run/capture_input.h"
#include "states/capture_run.h"
#include "states/capture_source.h"
#include "states/in_memory_source.h"
#include "states/live_source.h"

namespace kvs::inline cli {
namespace {

constexpr std::size_t kHeldBytes = std::size_t{2} << 30;  // limit for q_pre and k_pre kept between passes with p = 1

void open_capture(Run& run, EliteInput& input, bool whiten) {
  const Options& options = run.options();
  const std::filesystem::path path = options.text("capture");
  input.reader = CaptureReader::open(
      path, {.allow_incomplete = options.flag("allow-incomplete"), .skip_corrupt = options.flag("skip-corrupt")});
  const CaptureHeader& header = input.reader->header();
  for (const StateKind kind : {StateKind::kQPre, StateKind::kKPre})
    if (!header.states.contains(kind))
      throw Error(ErrorCode::kInput, path.string(),
                  "found no " + std::string(name_of(kind)) + ", expected q_pre and k_pre");
  input.model_sha256 = header.model_sha256;
  if (options.has("model")) {
    run.open_model();
    if (run.model().sha256() != header.model_sha256)
      throw Error(ErrorCode::kConflict, path.string() + ": model_sha256",
                  "found " + header.model_sha256 + ", expected that of --model, " + run.model().sha256());
    input.config = run.config();
  } else {
    input.config = model_config_of(header);
  }
  input.layers = captured_layers(options, header.layers);
  if (whiten) run.read_texts();
  run.identity() = run_identity(options, *input.reader, run.corpus());
  if (run.has_model()) run.identity()["model_config"] = config_json(input.config);
}

void open_live(Run& run, EliteInput& input) {
  run.open_model();
  input.config = run.config();
  input.model_sha256 = run.model().sha256();
  run.read_texts();
  input.layers = chosen_layers(run.options(), input.config);
}

}  // namespace

EliteInput open_elite_input(Run& run, bool whiten) {
  EliteInput input;
  if (run.options().has("capture"))
    open_capture(run, input, whiten);
  else
    open_live(run, input);
  input.documents = run.documents();
  if (has_factors(run.options())) add_decompositions(run.identity());
  return input;
}

void start_elite_source(EliteInput& input, Run& run, int norm) {
  if (input.reader) {
    input.backend = open_backend(run.options());
    input.source = open_capture_source(*input.reader, *input.backend, run.options(), run.settings());
    return run.start_on(*input.backend);
  }
  run.load();
  input.source = std::make_unique<LiveSource>(run.decoder(), input.documents);
  if (norm == 1) input.held = std::make_unique<InMemorySource>(*input.source, kHeldBytes);
}

}  // namespace kvs::inline cli
