// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "analyzers/spectrum_report.h"
#include "analyzers/spectrum_sums.h"
#include "calibrate/common/layer_options.h"
#include "calibrate/transform/measured_gains.h"
#include "cli/kvspectrum/commands.h"
#include "core/error.h"
#include "io/checkpoint.h"
#include "model/model_json.h"
#include "run/capture_input.h"
#include "run/progress.h"
#include "run/run.h"
#include "states/capture_run.h"
#include "states/capture_source.h"
#include "states/live_source.h"
#include "turns/turns.h"
#include "version.h"

namespace kvs::inline cli {
namespace {

void check_spectrum_options(const Options& options) {
  require_partner(options, kCaptureOptions, {"capture"});
  if (options.has("capture")) {
    refuse_options(options, kTextOptions, "--capture");
    refuse_options(options, {"model", "weights-budget"}, "--capture");
  } else {
    (void)options.integer("sinks", 0, options.integer("window", 2, 1 << 24) - 1);
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
      .value("layers", "LAYERS", "layers to analyse, such as 0,14-16", "all")
      .flag("allow-incomplete", "use the committed documents of an unfinished capture")
      .flag("skip-corrupt", "leave out documents whose checksum does not match");
  add_model_run_options(table, true);
  table.check(check_spectrum_options);
  return table;
}

/// The source of the states, and its description in the report.
struct Input {
  std::unique_ptr<CaptureReader> reader;  // nullptr: a live model
  std::unique_ptr<Backend> backend;       // set for a capture
  std::unique_ptr<StateSource> source;    // for a live model, set when it is loaded
  std::size_t documents = 0, tokens = 0;  // tokens: length of one document
  SpectrumResult result;                  // the members that describe the source of the states
  std::vector<std::size_t> layers;
  StateSet states{kSpectrumStates.begin(), kSpectrumStates.end()};
  LayerSizes kv_heads, head_dim;
  std::size_t sinks = 0;
  std::optional<MomentShape> gain;  // set unless --gain is off

  SpectrumAccumulator::Settings settings(Transform transform) const {
    return {transform, sinks, layers, states, kv_heads, head_dim};
  }
};

/// Returns true if all layers have as many heads of as many channels.
bool has_one_size(const Input& input) {
  return std::ranges::all_of(input.layers, [&](std::size_t layer) {
    const std::size_t first = input.layers.front();
    return input.kv_heads.of(layer) == input.kv_heads.of(first) && input.head_dim.of(layer) == input.head_dim.of(first);
  });
}

/// Sets the members that depend on both the options and the sizes of the states.
/// @param queries  true if the source has q_pre
void set_sizes(const Options& options, bool queries, bool quiet, Input& input) {
  input.sinks = options.count("sinks", 0, input.tokens - 1);
  if (!options.on_off("gain")) return;
  if (!has_one_size(input))
    return print_note("note: no coding gains: the layers have heads of several sizes; --layers can name those of one",
                      quiet);
  const std::size_t layer = input.layers.front();
  input.gain = MomentShape{.states = input.states,
                           .kv_heads = input.kv_heads.of(layer),
                           .head_dim = input.head_dim.of(layer),
                           .queries = queries,
                           .tokens = input.tokens,
                           .first_token = input.sinks};
}

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

Input open_capture(Run& run) {
  const Options& options = run.options();
  const std::filesystem::path path = options.text("capture");
  Input input;
  input.reader = CaptureReader::open(
      path, {.allow_incomplete = options.flag("allow-incomplete"), .skip_corrupt = options.flag("skip-corrupt")});
  const CaptureHeader& header = input.reader->header();
  input.backend = open_backend(options);
  input.source = open_capture_source(*input.reader, *input.backend, options, run.settings());
  input.documents = input.source->documents();
  input.tokens = header.tokens;
  input.layers = captured_layers(options, header.layers);
  input.states = spectrum_states(header, path);
  input.kv_heads = header.kv_heads;
  input.head_dim = header.head_dim;
  run.identity() = run_identity(options, *input.reader);
  run.identity().erase("text_sha256");
  input.result.model = model_record(model_config_of(header), header.model_sha256, header.tokens);
  input.result.capture = path.filename().string();
  input.result.capture_sha256 = run.identity().at("capture_sha256").get<std::string>();
  if (const Json texts = texts_of_capture(options, *input.reader); texts.contains("bos"))
    input.result.bos = texts.at("bos").is_null() ? std::optional<std::int32_t>() : texts.at("bos").get<std::int32_t>();
  set_sizes(options, header.states.contains(StateKind::kQPre), run.quiet(), input);
  return input;
}

Input open_live(Run& run) {
  run.open_model();
  const ModelConfig& config = run.config();
  Input input;
  input.layers = chosen_layers(run.options(), config);
  run.read_texts();
  const Corpus& corpus = run.corpus();
  input.documents = run.documents().size();
  input.tokens = run.tokens();
  input.kv_heads = sizes_of(config, &AttentionConfig::kv_heads);
  input.head_dim = sizes_of(config, &AttentionConfig::head_dim);
  ResultHead head = run.result_head("kvspectrum-spectrum", input.tokens);
  input.result.model = std::move(head.model);
  input.result.text_sha256 = std::move(head.text_sha256);
  input.result.bos = head.bos;
  input.result.tokens_dropped = corpus.tokens_dropped;
  set_sizes(run.options(), true, run.quiet(), input);
  return input;
}

/// Loads a live model, and prints an estimate of the run.
void start(Run& run, Input& input) {
  if (input.reader) {
    run.start_on(*input.backend);
    print_estimate({.flops = gain_flops(input),
                    .memory_bytes = captured_memory(input.reader->header()) + gain_memory(input, run),
                    .read_bytes = static_cast<double>(capture_bytes(input.reader->header()))},
                   *input.backend, run.settings());
    return;
  }
  run.load();
  const auto tokens = static_cast<double>(input.tokens), documents = static_cast<double>(input.documents);
  run.print_estimate({.flops = documents * forward_flops(run.config(), tokens) + gain_flops(input),
                      .memory_bytes = session_memory(run.session(), input.tokens) + gain_memory(input, run)});
  input.source = std::make_unique<LiveSource>(run.decoder(), run.documents());
}

SpectrumSums empty_sums(SpectralOps& ops, const SpectrumAccumulator::Settings& settings, const Input& input) {
  SpectrumSums sums{SpectrumAccumulator(ops, settings, input.source->tokens()), nullptr};
  if (input.gain) sums.moments = std::make_unique<MomentSource>(*input.source, *input.gain, input.layers);
  return sums;
}

using AddedDocuments = std::function<void(std::size_t)>;  // called with the number of documents in all sums

/// Adds documents from `first` on to the sums. The sums of a group of documents in turns are whole at its end.
void add_alone(StateSource& source, std::size_t first, SpectrumSums& sums, const AddedDocuments& whole,
               const std::function<void(std::size_t)>& done) {
  const std::size_t together = source.visits_together(0);
  run_in_groups(
      first, source.documents(), together, [&](std::size_t n) { sums.add_document(source, n); },
      [&](std::size_t n) {
        done(n + 1);
        if ((n + 1 - first) % together == 0) whole(n + 1);
      });
}

/// Like add_alone(), by all ranks: each document is summed separately first. Rank 0 has the result.
void add_shared(StateSource& source, std::size_t first, SpectrumSums& sums, const AddedDocuments& whole,
                const std::function<void(std::size_t)>& done, const std::function<SpectrumSums()>& empty,
                Ranks& ranks) {
  ranks.share(
      {.first = first, .last = source.documents()},
      [&](std::size_t n) {
        SpectrumSums document = empty();
        document.add_document(source, n);
        return UnitResult{Json(), document.take_all()};
      },
      [&](std::size_t n, const UnitResult& document) {
        sums.add(document.sums);
        done(n + 1);
        whole(n + 1);
      });
}

/// Adds the documents that the saved sums do not contain. The sums have the same bits with several ranks.
/// @param empty  returns sums over no documents
SpectrumSums accumulate(const std::function<SpectrumSums()>& empty, StateSource& source, Run& run) {
  SpectrumSums sums = empty();
  std::size_t first = 0;
  if (const auto state = run.saved_state()) {
    sums.restore(state->sums);
    first = state->documents;
  }
  first = run.ranks().broadcast(Json(first)).get<std::size_t>();
  Progress progress("spectrum", source.documents(), run.quiet());
  progress.update(static_cast<double>(first));
  const AddedDocuments whole = [&](std::size_t documents) {
    if (run.checkpoint().due()) run.checkpoint().save(documents, sums.all());
  };
  if (run.ranks().alone())
    add_alone(source, first, sums, whole, progress.counter());
  else
    add_shared(source, first, sums, whole, progress.counter(), empty, run.ranks());
  return sums;
}

RunOutputs outputs_of(const std::filesystem::path& folder, const Input& input, Transform transform) {
  RunOutputs outputs{
      .main = folder / "spectrum.json", .state = RunOutputs::State::kCheckpoint, .holder = folder / "spectrum.h5"};
  const bool figure = input.gain && has_whole_gains(*input.gain, input.documents * input.gain->counted());
  for (const std::string& name : spectrum_report_files(input.settings(transform), figure))
    if (folder / name != outputs.main) outputs.others.push_back(folder / name);
  return outputs;
}

void write_report(const std::filesystem::path& folder, const SpectrumSums& sums, Input& input, Run& run) {
  const Spectrum spectrum = sums.spectrum.result();
  std::optional<ModelGains> gains;
  if (input.gain)
    gains = measured_gains(*sums.moments, spectrum.documents, input.layers, input.reader ? nullptr : &run.model());
  input.result.command = run.options().command();
  input.result.tool_version = kToolVersion;
  const SpectrumResult result = spectrum_result(std::move(input.result), spectrum, gains ? &*gains : nullptr);
  const std::string note = write_spectrum_report(folder, spectrum, result, run.settings().replace());
  if (!note.empty()) print_note(note, run.quiet());
  run.remove_state();
  run.print(to_json(result), to_text(result));
}

void run_spectrum(const Options& options) {
  const Transform transform = options.text("transform") == "dct" ? Transform::kDct : Transform::kDft;
  const std::filesystem::path folder = options.text("out-dir");
  std::optional<OutputFolder> made;  // destroyed after the lock in this folder
  Run run(options);
  check_inputs_spared(std::array{folder / "spectrum.h5", folder / "spectrum.json"}, options);
  // The input is checked before any file is created.
  if (run.is_root()) OutputFolder::check(folder);
  Input input = options.has("capture") ? open_capture(run) : open_live(run);
  if (run.is_root()) made.emplace(folder);
  run.take_outputs(outputs_of(folder, input, transform));
  if (run.is_finished()) return;
  start(run, input);
  const auto ops = input.source->backend().make_spectral_ops();
  const auto empty = [&] { return empty_sums(*ops, input.settings(transform), input); };
  const SpectrumSums sums = accumulate(empty, *input.source, run);
  if (run.is_root()) write_report(folder, sums, input, run);
}

}  // namespace

const Subcommand kSpectrumCommand{"spectrum", spectrum_options, run_spectrum, true};

}  // namespace kvs::inline cli
