// SPDX-License-Identifier: Apache-2.0
#include "run/capture_input.h"

#include <algorithm>
#include <limits>

#include "calibrate/common/layer_options.h"
#include "core/error.h"
#include "model/config_json.h"
#include "states/capture_run.h"
#include "states/live_source.h"

namespace kvs::inline run {
namespace {

/// Returns the layers that --layers names among those in a capture; for "all", all of them.
std::vector<std::size_t> captured_layers(const Options& options, std::span<const std::int32_t> stored) {
  std::vector<std::size_t> layers(stored.begin(), stored.end());
  if (options.text("layers") == "all") return layers;
  auto wanted = options.indices("layers", layers.back() + 1);
  for (const std::size_t layer : wanted)
    if (std::ranges::find(layers, layer) == layers.end())
      throw Error(ErrorCode::kUsage, "--layers",
                  "found " + std::to_string(layer) + ", expected layers that the capture holds");
  return wanted;
}

void open_capture(Run& run, bool texts, StateInput& input) {
  const Options& options = run.options();
  const std::filesystem::path path = options.text("capture");
  input.reader = CaptureReader::open(
      path, {.allow_incomplete = options.flag("allow-incomplete"), .skip_corrupt = options.flag("skip-corrupt")});
  const CaptureHeader& header = input.reader->header();
  input.model_sha256 = header.model_sha256;
  if (options.has("model")) {
    run.open_model();
    if (run.model().sha256() != header.model_sha256)
      throw Error(ErrorCode::kConflict, path.string() + ": model_sha256",
                  "found " + header.model_sha256 + ", expected that of --model, " + run.model().sha256());
  }
  input.config = run.has_model() ? run.config() : model_config_of(header);
  input.layers = captured_layers(options, header.layers);
  if (texts) run.read_texts();
  run.identity() = run_identity(options, *input.reader, run.corpus());
  if (run.has_model()) run.identity()["model_config"] = config_json(input.config);
}

}  // namespace

void add_capture_options(OptionTable& table) {
  table.flag("allow-incomplete", "use the committed documents of an unfinished capture")
      .flag("skip-corrupt", "leave out documents whose checksum does not match")
      .check([](const Options& options) {
        require_partner(options, {"allow-incomplete", "skip-corrupt"}, {"capture"});
      });
}

StateInput open_states(Run& run, bool texts) {
  StateInput input;
  if (run.options().has("capture")) {
    open_capture(run, texts, input);
    return input;
  }
  run.open_model();
  input.config = run.config();
  input.model_sha256 = run.model().sha256();
  input.layers = chosen_layers(run.options(), input.config);
  run.read_texts();
  return input;
}

void StateInput::open_source(Run& run, const std::vector<std::vector<std::int32_t>>& documents) {
  if (!reader) {
    run.load();
    source = std::make_unique<LiveSource>(run.decoder(), documents);
    return;
  }
  if (!reader->has_checksums())
    run.note(run.options().text("capture") + " has no manifest with checksums next to it: its data are not checked");
  backend = open_backend(run.options());
  auto captured = std::make_unique<CaptureSource>(*reader, *backend, run.options().flag("skip-corrupt"));
  if (captured->skipped() > 0)
    run.note("left out " + std::to_string(captured->skipped()) + " of " + std::to_string(reader->documents()) +
             " documents: their checksums do not match");
  source = std::move(captured);
}

Json texts_of_capture(const Options& options, const CaptureReader& capture) {
  Json texts = Json::object();
  if (!capture.identity().is_object()) return texts;
  const JsonCursor identity(capture.identity(), options.text("capture"), "/identity");
  if (identity.has("bos")) (void)identity.at("bos").unsigned_integer(std::numeric_limits<std::int32_t>::max());
  if (identity.has("tokenizer_sha256")) (void)identity.at("tokenizer_sha256").string();
  for (const char* name : {"bos", "tokenizer_sha256"})
    if (identity.value().contains(name)) texts[name] = identity.at(name).value();
  return texts;
}

}  // namespace kvs::inline run
