#include "analyzers/spectrum.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>

#include "analyzers/spectrum_summary.h"
#include "capture/capture_run.h"
#include "capture/capture_source.h"
#include "capture/live_source.h"
#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/common/session.h"
#include "cli/kvspectrum/commands.h"
#include "core/error.h"
#include "export/spectrum_report.h"
#include "io/checkpoint.h"
#include "io/file.h"
#include "version.h"

namespace kvs {
namespace {

OptionTable spectrum_options() {
  OptionTable table(
      "kvspectrum spectrum (--capture FILE | --model PATH --text PATH) --out-dir DIR [options]",
      "Power spectra of keys and values along the token axis, per layer and per head, with figures.",
      {"kvspectrum spectrum --capture book.h5 --out-dir spectrum",
       "kvspectrum spectrum --model SmolLM2.gguf --text book.txt --documents 16 --transform dft --out-dir spectrum"});
  table.value("capture", "FILE", "a capture with k_pre and v; a missing k_post is recomputed")
      .value("out-dir", "DIR", "where spectrum.h5, spectrum.json and the figures go")
      .value("transform", "dct|dft", "along the token axis", "dct")
      .value("sinks", "S", "first tokens left out in the second set of spectra", "4")
      .value("layers", "LIST", "such as 0,14-16", "all")
      .flag("allow-incomplete", "use the committed documents of an unfinished capture")
      .flag("skip-corrupt", "leave out documents whose checksum does not match");
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, true);
  return table;
}

/// Where the states come from, and what the report says of it.
struct Input {
  std::unique_ptr<CaptureReader> reader;  // from a capture …
  ModelSession session;                   // … or from a live model
  std::unique_ptr<Backend> backend;
  std::unique_ptr<StateSource> source;
  SpectrumOrigin origin;
  std::vector<std::size_t> layers;
  StateSet states{kSpectrumStates.begin(), kSpectrumStates.end()};
  std::size_t kv_heads = 0, head_dim = 0;
  Json identity;
};

StateSet spectrum_states(const CaptureHeader& header, const std::filesystem::path& path) {
  StateSet states = header.states;
  states.erase(StateKind::kQPre);
  if (states.contains(StateKind::kKPre)) states.insert(StateKind::kKPost);
  if (states.empty())
    throw Error(ErrorCode::kData, path.string(), "found only q_pre, expected at least one of k_pre, k_post, v");
  return states;
}

void open_capture(const Options& options, const RunOptions& run, Input& input) {
  refuse_options(options, kTextOptions, "--capture");
  refuse_options(options, std::array<std::string_view, 1>{"model"}, "--capture");
  const std::filesystem::path path = options.text("capture");
  input.reader = CaptureReader::open(
      path, {.allow_incomplete = options.flag("allow-incomplete"), .skip_corrupt = options.flag("skip-corrupt")});
  const CaptureHeader& header = input.reader->header();
  input.backend = open_backend(options);
  input.source = open_capture_source(*input.reader, *input.backend, options, run);
  input.origin = {header.model_name,
                  model_json(model_config_of(header), header.model_sha256, header.tokens),
                  {{"capture", path.filename().string()}}};
  input.layers = captured_layers(options, header.layers);
  input.states = spectrum_states(header, path);
  input.kv_heads = header.kv_heads;
  input.head_dim = header.head_dim;
  input.identity = run_identity(options, header.model_sha256, {});
  input.identity["capture"] = {{"tokens", header.tokens}, {"documents", input.reader->documents()}};
  announce({.memory_bytes = captured_memory(header), .read_bytes = static_cast<double>(capture_bytes(header))},
           *input.backend, run);
}

void open_live(const Options& options, const RunOptions& run, Input& input) {
  auto model = open_model(options);
  input.layers = options.indices("layers", model->config().layers);
  const Corpus corpus = load_corpus(options, run, *model);
  input.identity = run_identity(options, model->sha256(), corpus);
  input.session = load_model(std::move(model), options, run);
  const ModelConfig& config = input.session.config();
  input.origin = {config.name,
                  model_json(config, input.session.source->sha256(), corpus.documents.front().tokens.size()),
                  {{"text_sha256", corpus.text_sha256}, {"tokens_dropped", corpus.tokens_dropped}}};
  input.kv_heads = config.kv_heads;
  input.head_dim = config.head_dim;
  auto documents = tokens_of(corpus);
  const auto tokens = static_cast<double>(documents.front().size());
  announce({.flops = static_cast<double>(documents.size()) * forward_flops(config, tokens),
            .memory_bytes = session_memory(input.session, documents.front().size())},
           *input.session.backend, run);
  input.source = std::make_unique<LiveSource>(*input.session.decoder, std::move(documents));
}

constexpr std::size_t kLowTenth = 2;  // of kLowPercents: 10 %
static_assert(kLowPercents[kLowTenth] == 10);

std::string findings(const Spectrum& spectrum) {
  std::ostringstream text;
  text.precision(3);
  text << "spectrum: " << spectrum.documents << " documents of " << spectrum.tokens << " tokens, "
       << (spectrum.transform == Transform::kDct ? "DCT" : "DFT") << ", without the first " << spectrum.sinks
       << " tokens\n";
  for (const StateKind state : spectrum.states) {
    const PowerTable& table = spectrum.table(state, false);
    double low = 0, coefficients = 0;
    for (std::size_t layer = 0; layer < table.layers; ++layer) {
      const SpectrumSummary summary =
          summarise_power(table.layer_mean(layer), spectrum.transform, spectrum.tokens - spectrum.sinks, true);
      low += summary.low_share[kLowTenth] / static_cast<double>(table.layers);
      coefficients += static_cast<double>(summary.bins_for_energy) / static_cast<double>(table.layers);
    }
    text << "  " << name_of(state) << ": lowest 10 % of bins hold " << 100 * low << " % of the energy; 95 % takes "
         << coefficients << " of " << table.bins << " bins (means over layers)\n";
  }
  return text.str();
}

void accumulate(SpectrumAccumulator& sums, StateSource& source, std::size_t first, Checkpoint& checkpoint,
                const RunOptions& run) {
  Progress progress("spectrum", static_cast<double>(source.documents()), run.quiet);
  for (std::size_t document = first; document < source.documents(); ++document) {
    progress.update(static_cast<double>(document));
    sums.add_document(source, document);
    if (checkpoint.due()) checkpoint.save(document + 1, sums.sums());
  }
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(ErrorCode::kEnvironment, folder.string(), "cannot be made a folder: " + error.message());
}

}  // namespace

void run_spectrum(Arguments arguments) {
  const auto options = spectrum_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  const Transform transform = options->text("transform") == "dct" ? Transform::kDct : Transform::kDft;
  const std::filesystem::path folder = options->text("out-dir");
  const std::filesystem::path out = folder / "spectrum.h5";
  check_inputs_spared(std::array{out, folder / "spectrum.json"}, *options);
  // Nothing is created before the input is known to be good, and no model loaded for a report that cannot be written.
  if (std::filesystem::exists(folder / "spectrum.json")) check_outputs(folder / "spectrum.json", {}, *options, run);

  Input input;
  if (options->has("capture")) {
    open_capture(*options, run, input);
  } else {
    open_live(*options, run, input);
  }
  const std::size_t tokens = input.source->tokens();
  const auto sinks = static_cast<std::size_t>(options->integer("sinks", 0, static_cast<std::int64_t>(tokens) - 1));
  const auto ops = make_spectral_ops(input.source->backend());
  const SpectrumAccumulator::Settings settings{transform,    sinks,          input.layers,
                                               input.states, input.kv_heads, input.head_dim};
  const auto of_this_run = [&](const Json& report) {
    return report.value("/source/command"_json_pointer, Json()) == options->command();
  };
  if (is_finished(folder / "spectrum.json", out, run, of_this_run))
    return print_result(run,
                        parse_json(read_text_file(folder / "spectrum.json", std::size_t{1} << 30), "spectrum.json"),
                        (folder / "spectrum.json").string() + ": finished before\n");
  make_folder(folder);
  const OutputLock lock(out, run.lock);
  std::vector<std::filesystem::path> others;
  for (const std::string& name : spectrum_report_files(settings))
    if (name != "spectrum.json") others.push_back(folder / name);
  check_outputs(folder / "spectrum.json", others, *options, run);
  SpectrumAccumulator sums(*ops, settings, tokens);
  Checkpoint checkpoint(out, input.identity);
  std::size_t first = 0;
  if (const auto state = checkpoint.load(run.resume, run.force)) {
    sums.restore(state->sums);
    first = state->documents;
  }
  accumulate(sums, *input.source, first, checkpoint, run);

  const Spectrum spectrum = sums.result();
  input.origin.source["command"] = options->command();
  input.origin.source["tool_version"] = kToolVersion;
  write_spectrum_report(folder, spectrum, input.origin, run.replace());
  checkpoint.remove();
  print_result(run, spectrum_json(spectrum, input.origin), findings(spectrum));
}

}  // namespace kvs
