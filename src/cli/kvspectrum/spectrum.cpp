#include "analyzers/spectrum.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <sstream>

#include "analyzers/coding_gain_report.h"
#include "analyzers/moments.h"
#include "analyzers/spectrum_report.h"
#include "analyzers/spectrum_summary.h"
#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/common/session.h"
#include "cli/kvspectrum/commands.h"
#include "cli/kvspectrum/spectrum_gain.h"
#include "core/error.h"
#include "io/checkpoint.h"
#include "io/file.h"
#include "model/model_json.h"
#include "states/capture_run.h"
#include "states/capture_source.h"
#include "states/live_source.h"
#include "version.h"

namespace kvs {
namespace {

void check_spectrum_options(const Options& options) {
  require_partner(options, kCaptureOptions, std::array<std::string_view, 1>{"capture"});
  if (options.has("capture")) {
    refuse_options(options, kTextOptions, "--capture");
    refuse_options(options, std::array<std::string_view, 2>{"model", "weights-budget"}, "--capture");
  } else {
    (void)options.integer("sinks", 0, options.integer("window", 2, 1 << 24) - 1);
  }
}

OptionTable spectrum_options() {
  OptionTable table(
      "kvspectrum spectrum (--capture FILE | --model PATH --text PATH) --out-dir DIR [options]",
      "Power spectra of keys and values along the token axis and what transforms save, per layer and per head.",
      {"kvspectrum spectrum --capture book.h5 --out-dir spectrum",
       "kvspectrum spectrum --model SmolLM2.gguf --text book.txt --documents 16 --transform dft --out-dir spectrum"});
  table.value("capture", "FILE", "a capture with k_pre and v; a missing k_post is recomputed")
      .value("out-dir", "DIR", "where spectrum.h5, spectrum.json and the figures go")
      .required()
      .value("transform", "dct|dft", "along the token axis", "dct")
      .value("sinks", "S", "first tokens left out in the second set of spectra", "4")
      .from(0)
      .value("gain", "on|off", "measure what transforms along tokens and across channels save", "on")
      .value("layers", "LAYERS", "such as 0,14-16", "all")
      .flag("allow-incomplete", "use the committed documents of an unfinished capture")
      .flag("skip-corrupt", "leave out documents whose checksum does not match");
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, true);
  table.check(check_spectrum_options);
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
  std::size_t sinks = 0;
  std::optional<MomentShape> gain;  // unless it is off
  Json identity;
};

/// What follows from the options once the states' sizes are known. @param queries  whether the source has q_pre
void set_sizes(const Options& options, std::size_t tokens, bool queries, Input& input) {
  input.sinks = static_cast<std::size_t>(options.integer("sinks", 0, static_cast<std::int64_t>(tokens) - 1));
  if (options.on_off("gain"))
    input.gain = MomentShape{.states = input.states,
                             .kv_heads = input.kv_heads,
                             .head_dim = input.head_dim,
                             .queries = queries,
                             .tokens = tokens,
                             .first_token = input.sinks};
}

/// Of all documents and of one.
double gain_memory(const Input& input) { return input.gain ? 2 * moment_bytes(*input.gain, input.layers.size()) : 0; }
double gain_flops(const Input& input, std::size_t documents) {
  return input.gain ? static_cast<double>(documents) * moment_flops(*input.gain, input.layers.size()) : 0;
}

StateSet spectrum_states(const CaptureHeader& header, const std::filesystem::path& path) {
  StateSet states = header.states;
  states.erase(StateKind::kQPre);
  if (states.contains(StateKind::kKPre)) states.insert(StateKind::kKPost);
  if (states.empty())
    throw Error(ErrorCode::kData, path.string(), "found only q_pre, expected at least one of k_pre, k_post, v");
  return states;
}

void open_capture(const Options& options, const RunOptions& run, Input& input) {
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
  input.identity = run_identity(options, *input.reader);
  input.identity.erase("text_sha256");
  input.origin.source["capture_sha256"] = input.identity.at("capture_sha256");
  if (const Json texts = texts_of_capture(options, *input.reader); texts.contains("bos"))
    input.origin.source["bos"] = texts.at("bos");
  set_sizes(options, header.tokens, header.states.contains(StateKind::kQPre), input);
  announce({.flops = gain_flops(input, input.source->documents()),
            .memory_bytes = captured_memory(header) + gain_memory(input),
            .read_bytes = static_cast<double>(capture_bytes(header))},
           *input.backend, run);
}

void open_live(const Options& options, const RunOptions& run, Input& input) {
  auto model = open_model(options);
  input.layers = options.indices("layers", model->config().layers);
  const Corpus corpus = load_corpus(options, run, *model);
  input.identity = run_identity(options, *model, corpus);
  input.session = load_model(std::move(model), options, run);
  const ModelConfig& config = input.session.config();
  input.origin = {
      config.name,
      model_json(config, input.session.source->sha256(), corpus.documents.front().tokens.size()),
      {{"text_sha256", corpus.text_sha256}, {"bos", bos_json(corpus.bos)}, {"tokens_dropped", corpus.tokens_dropped}}};
  input.kv_heads = config.kv_heads;
  input.head_dim = config.head_dim;
  auto documents = tokens_of(corpus);
  const std::size_t tokens = documents.front().size();
  set_sizes(options, tokens, true, input);
  announce({.flops = static_cast<double>(documents.size()) * forward_flops(config, static_cast<double>(tokens)) +
                     gain_flops(input, documents.size()),
            .memory_bytes = session_memory(input.session, tokens) + gain_memory(input)},
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

/// Sums of a spectrum and, where gains are wanted, the moments that are taken on the way to it.
struct Sums {
  SpectrumAccumulator spectrum;
  std::unique_ptr<MomentSource> moments;

  std::vector<std::span<const double>> all() const {
    std::vector<std::span<const double>> sums = spectrum.sums();
    if (moments != nullptr) std::ranges::copy(moments->sums(), std::back_inserter(sums));
    return sums;
  }
  std::vector<std::vector<double>> take_all() {
    std::vector<std::vector<double>> sums = spectrum.take_sums();
    if (moments != nullptr) std::ranges::move(moments->take_sums(), std::back_inserter(sums));
    return sums;
  }
  void restore(std::span<const std::vector<double>> sums) {
    const std::size_t own = std::min(spectrum.sums().size(), sums.size());
    spectrum.restore(sums.first(own));
    if (moments != nullptr) moments->restore(sums.subspan(own));
  }
  void add(std::span<const std::vector<double>> sums) {
    const std::size_t own = spectrum.sums().size();
    spectrum.add(sums.first(own));
    if (moments != nullptr) moments->add(sums.subspan(own));
  }
};

Sums empty_sums(SpectralOps& ops, const SpectrumAccumulator::Settings& settings, const Input& input) {
  Sums sums{SpectrumAccumulator(ops, settings, input.source->tokens()), nullptr};
  if (input.gain) sums.moments = std::make_unique<MomentSource>(*input.source, *input.gain, input.layers);
  return sums;
}

/// Documents from `first` on, each by itself first: ranks share them. Rank 0 has the sums.
/// @param empty  of no document
void accumulate(const std::function<Sums()>& empty, StateSource& source, std::size_t first, Sums& sums,
                Checkpoint& checkpoint, const RunOptions& run) {
  Progress progress("spectrum", static_cast<double>(source.documents()), run.quiet);
  progress.update(static_cast<double>(first));
  run.ranks->share(
      {.first = first, .last = source.documents()},
      [&](std::size_t n) {
        Sums document = empty();
        document.spectrum.add_document(document.moments ? *document.moments : source, n);
        return UnitResult{Json(), document.take_all()};
      },
      [&](std::size_t n, const UnitResult& document) {
        sums.add(document.sums);
        progress.update(static_cast<double>(n + 1));
        if (checkpoint.due()) checkpoint.save(n + 1, sums.all());
      });
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
  if (run.leads()) OutputFolder::check(folder);
  if (std::filesystem::exists(folder / "spectrum.json")) check_outputs(folder / "spectrum.json", {}, *options, run);

  Input input;
  if (options->has("capture")) {
    open_capture(*options, run, input);
  } else {
    open_live(*options, run, input);
  }
  const auto ops = make_spectral_ops(input.source->backend());
  const SpectrumAccumulator::Settings settings{transform,    input.sinks,    input.layers,
                                               input.states, input.kv_heads, input.head_dim};
  const auto of_this_run = [&](const Json& report) { return is_of_run(report, "", *options, input.identity); };
  std::optional<OutputFolder> made;
  if (run.leads()) made.emplace(folder);
  std::vector<std::filesystem::path> outputs{folder / "spectrum.json"};
  const bool figure = input.gain && has_whole_gains(*input.gain, input.source->documents() * input.gain->counted());
  for (const std::string& name : spectrum_report_files(settings, figure))
    if (folder / name != outputs.front()) outputs.push_back(folder / name);
  const OutputLock lock(out, run.lock, outputs);
  if (is_finished(outputs.front(), out, run, of_this_run, [&](const Json&) { return outputs; }))
    return print_result(run, parse_json(read_text_file(outputs.front(), std::size_t{1} << 30), "spectrum.json"),
                        outputs.front().string() + ": finished before\n");
  check_outputs(outputs.front(), std::span(outputs).subspan(1), *options, run);
  require_agreement(run, input.identity, input.source->backend());
  const auto empty = [&] { return empty_sums(*ops, settings, input); };
  Sums sums = empty();
  Checkpoint checkpoint(out, input.identity);
  std::size_t first = 0;
  if (run.leads()) {
    if (const auto state = load_checkpoint(checkpoint, out, run)) {
      sums.restore(state->sums);
      first = state->documents;
    }
  }
  first = run.ranks->tell(Json(first)).get<std::size_t>();
  accumulate(empty, *input.source, first, sums, checkpoint, run);
  if (!run.leads()) return;

  const Spectrum spectrum = sums.spectrum.result();
  std::optional<ModelGains> gains;
  if (input.gain) gains = measured_gains(*sums.moments, spectrum.documents, input.layers, input.session.source.get());
  const ModelGains* const shown = gains ? &*gains : nullptr;
  input.origin.source["command"] = options->command();
  input.origin.source["tool_version"] = kToolVersion;
  const std::string note = write_spectrum_report(folder, spectrum, input.origin, run.replace(), shown);
  if (!note.empty()) remark(note, run.quiet);
  checkpoint.remove();
  print_result(run, spectrum_json(spectrum, input.origin, shown),
               findings(spectrum) + (gains ? coding_gain_text(*gains) : ""));
}

}  // namespace kvs
