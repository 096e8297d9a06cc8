// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include "analyzers/spectrum_report.h"
#include "analyzers/spectrum_sums.h"
#include "calibrate/transform/measured_gains.h"
#include "cli/kvspectrum/commands.h"
#include "core/error.h"
#include "run/capture_input.h"
#include "run/progress.h"
#include "states/capture_run.h"

namespace kvs::inline cli {
namespace {

void check_spectrum_options(const Options& options) {
  if (options.has("capture")) {
    refuse_options(options, kTextOptions, "--capture");
    refuse_options(options, {"model", "weights-budget"}, "--capture");
  } else {
    (void)options.integer("sinks", 0, options.integer("window", 2, kMaxTokens) - 1);
  }
}

OptionTable spectrum_options() {
  OptionTable table(
      "kvspectrum spectrum (--capture FILE | --model PATH --text PATH) --out-dir DIR [options]",
      "Computes power spectra of keys and values along tokens, and the coding gain of transforms. The results are per "
      "layer and per head.",
      {"kvspectrum spectrum --capture book.h5 --out-dir spectrum",
       "kvspectrum spectrum --model SmolLM2.gguf --text book.txt --documents 16 --transform dft --out-dir spectrum"});
  table.value("capture", "FILE", "a capture with k_pre and v; a missing k_post is recomputed")
      .value("out-dir", "DIR", "folder for spectrum.h5, spectrum.json and the figures")
      .required()
      .value("transform", "dct|dft", "transform along the token axis", "dct")
      .value("sinks", "S", "first tokens that the second set of spectra leaves out", "4")
      .from(0)
      .value("gain", "on|off", "measure the coding gain of transforms along tokens and across channels", "on")
      .value("layers", "LAYERS", "layers to analyse, such as 0,14-16", "all");
  add_capture_options(table);
  add_model_run_options(table, true);
  table.check(check_spectrum_options);
  return table;
}

/// The source of the states, and what is computed of them.
struct Input : StateInput {
  std::size_t documents = 0, tokens = 0;  // tokens: length of one document
  SpectrumResult result;                  // the members that describe the source of the states
  SpectrumAccumulator::Settings settings;
  std::optional<MomentShape> gain;  // set unless --gain is off
};

/// Returns the bytes of the moments of all documents and, with several ranks, of one document.
double gain_memory(const Input& input, const Run& run) {
  return input.gain ? (run.ranks().alone() ? 1 : 2) * moment_bytes(*input.gain, input.layers.size()) : 0;
}
double gain_flops(const Input& input) {
  return input.gain ? static_cast<double>(input.documents) * moment_flops(*input.gain, input.layers.size()) : 0;
}

StateSet spectrum_states(const CaptureHeader& header, const std::filesystem::path& path) {
  StateSet states = header.states;
  states.erase(StateKind::kQPre);
  if (states.contains(StateKind::kKPre)) states.insert(StateKind::kKPost);
  if (states.empty())
    throw Error(ErrorCode::kData, path.string(), "found only q_pre, expected at least one of k_pre, k_post, v");
  return states;
}

void describe_capture(Run& run, Input& input) {
  const std::filesystem::path path = run.options().text("capture");
  input.open_source(run, {});
  input.documents = input.source->documents();
  input.tokens = input.source->tokens();
  input.settings.states = spectrum_states(input.reader->header(), path);
  run.identity().erase("text_sha256");
  input.result.capture = path.filename().string();
  input.result.capture_sha256 = run.identity().at("capture_sha256").get<std::string>();
  if (const Json texts = texts_of_capture(run.options(), *input.reader); texts.contains("bos"))
    input.result.bos = texts.at("bos").is_null() ? std::optional<std::int32_t>() : texts.at("bos").get<std::int32_t>();
}

void describe_texts(const Run& run, Input& input) {
  input.documents = run.documents().size();
  input.tokens = run.tokens();
  input.result.text_sha256 = run.corpus().text_sha256;
  input.result.bos = bos_record(run.corpus().bos);
  input.result.tokens_dropped = run.corpus().tokens_dropped;
}

Input open_input(Run& run) {
  const Options& options = run.options();
  Input input;
  static_cast<StateInput&>(input) = open_states(run, false);
  if (input.reader)
    describe_capture(run, input);
  else
    describe_texts(run, input);
  input.result.model = model_record(input.config, input.model_sha256, input.tokens);
  input.result.command = options.command();
  input.result.tool_version = kToolVersion;
  input.settings.transform = options.text("transform") == "dct" ? Transform::kDct : Transform::kDft;
  input.settings.sinks = options.count("sinks", 0, static_cast<std::int64_t>(input.tokens) - 1);
  input.settings.layers = input.layers;
  input.settings.kv_heads = sizes_of(input.config, &AttentionConfig::kv_heads);
  input.settings.head_dim = sizes_of(input.config, &AttentionConfig::head_dim);
  if (!options.on_off("gain")) return input;
  const bool queries = !input.reader || input.reader->header().states.contains(StateKind::kQPre);
  input.gain = moment_shape(input.settings, queries, input.tokens);
  if (!input.gain) run.note("no coding gains: the layers have heads of several sizes; --layers can name those of one");
  return input;
}

/// Loads a live model, and prints an estimate of the run.
void start(Run& run, Input& input) {
  if (input.reader) {
    const CaptureHeader& header = input.reader->header();
    run.start_on(*input.backend);
    print_estimate({.flops = gain_flops(input),
                    .memory_bytes = captured_memory(header) + gain_memory(input, run),
                    .read_bytes = static_cast<double>(capture_bytes(header))},
                   *input.backend, run.settings());
    return;
  }
  input.open_source(run, run.documents());
  const auto tokens = static_cast<double>(input.tokens), documents = static_cast<double>(input.documents);
  run.print_estimate({.flops = documents * forward_flops(run.config(), tokens) + gain_flops(input),
                      .memory_bytes = session_memory(run.session(), input.tokens) + gain_memory(input, run)});
}

/// Adds the documents that the saved sums do not contain.
SpectrumSums accumulate(const Input& input, SpectralOps& ops, Run& run) {
  StateSource& source = *input.source;
  const auto empty = [&] {
    SpectrumSums sums{SpectrumAccumulator(ops, input.settings, source.tokens()), nullptr};
    if (input.gain) sums.moments = std::make_unique<MomentSource>(source, *input.gain, input.layers);
    return sums;
  };
  SpectrumSums sums = empty();
  std::size_t first = 0;
  if (const auto state = run.saved_state()) {
    sums.restore(state->sums);
    first = state->documents;
  }
  first = run.ranks().broadcast(Json(first)).get<std::size_t>();
  Progress progress("spectrum", source.documents(), run.quiet());
  add_shared_documents(sums, empty, source, first, run.checkpoint(), run.ranks(), progress.counter());
  return sums;
}

RunOutputs outputs_of(const std::filesystem::path& folder, const Input& input) {
  RunOutputs outputs{
      .main = folder / "spectrum.json", .state = RunOutputs::State::kCheckpoint, .holder = folder / "spectrum.h5"};
  const bool figure = input.gain && has_whole_gains(*input.gain, input.documents * input.gain->counted());
  for (const std::string& name : spectrum_report_files(input.settings, figure))
    if (folder / name != outputs.main) outputs.others.push_back(folder / name);
  return outputs;
}

void write_report(const std::filesystem::path& folder, const SpectrumSums& sums, Input& input, Run& run) {
  const Spectrum spectrum = sums.spectrum.result();
  std::optional<ModelGains> gains;
  if (input.gain)
    gains = measured_gains(*sums.moments, spectrum.documents, input.layers, input.reader ? nullptr : &run.model());
  const SpectrumResult result = spectrum_result(std::move(input.result), spectrum, gains ? &*gains : nullptr);
  const std::string note = write_spectrum_report(folder, spectrum, result, run.settings().replace());
  if (!note.empty()) print_note(note, run.quiet());
  run.remove_state();
  run.print(to_json(result), to_text(result));
}

void run_spectrum(const Options& options) {
  const std::filesystem::path folder = options.text("out-dir");
  std::optional<OutputFolder> made;  // destroyed after the lock in this folder
  Run run(options);
  check_inputs_spared(std::array{folder / "spectrum.h5", folder / "spectrum.json"}, options);
  // The input is checked before any file is created.
  if (run.is_root()) OutputFolder::check(folder);
  Input input = open_input(run);
  if (run.is_root()) made.emplace(folder);
  run.take_outputs(outputs_of(folder, input));
  if (run.is_finished()) return;
  start(run, input);
  const auto ops = input.source->backend().make_spectral_ops();
  const SpectrumSums sums = accumulate(input, *ops, run);
  if (run.is_root()) write_report(folder, sums, input, run);
}

}  // namespace

const Subcommand kSpectrumCommand{"spectrum", spectrum_options, run_spectrum, true};

}  // namespace kvs::inline cli
