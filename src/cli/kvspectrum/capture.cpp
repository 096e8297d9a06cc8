#include <filesystem>
#include <iostream>
#include <memory>
#include <span>

#include "capture/capture_run.h"
#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/common/session.h"
#include "cli/kvspectrum/commands.h"
#include "core/error.h"
#include "io/file.h"

namespace kvs {
namespace {

OptionTable capture_options() {
  OptionTable table("kvspectrum capture --model PATH --text PATH --out FILE [options]",
                    "Runs texts through a model and stores queries, keys and values of every layer in one HDF5 file.",
                    {"kvspectrum capture --model SmolLM2.gguf --text book.txt --documents 8 --out book.h5",
                     "kvspectrum capture --model llama/ --text book.txt --states q_pre,k_pre --layers 0,14-16 "
                     "--store bf16 --out book.h5"});
  table.value("out", "FILE", "the capture to write")
      .value("states", "LIST", "any of q_pre,k_pre,k_post,v", "k_pre,v")
      .value("layers", "LIST", "such as 0,14-16", "all")
      .value("store", "f32|f16|bf16", "type of the stored states", "f32");
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, true);
  return table;
}

StateSet states_of(const Options& options) {
  const std::vector<std::string> names = options.words("states");
  StateSet states;
  for (const std::string& name : names) {
    const auto kind = state_kind_from_name(name);
    if (!kind) throw Error(ErrorCode::kUsage, "--states", "found '" + name + "', expected any of q_pre,k_pre,k_post,v");
    states.insert(*kind);
  }
  if (states.size() != names.size())
    throw Error(ErrorCode::kUsage, "--states",
                "found '" + options.text("states") + "', expected each state at most once");
  return states;
}

/// Captures documents from `first` on. Each rank writes its own into the one file that rank 0 has laid out.
/// @param writer  nullptr but on rank 0
void capture_rest(const ModelSession& session, std::span<const std::vector<std::int32_t>> documents,
                  const CaptureHeader& header, std::size_t first, const std::filesystem::path& out,
                  const RunOptions& run, CaptureWriter* writer) {
  std::unique_ptr<CapturePart> others;
  if (!run.ranks->alone()) {
    const Json layout = run.ranks->tell(writer != nullptr ? writer->layout() : Json());
    if (writer == nullptr) others = CapturePart::open(out, header, layout);
  }
  CaptureStream stream(*session.backend, writer != nullptr ? writer->part() : *others, header);
  Progress progress("capture", static_cast<double>(documents.size()), run.quiet);
  progress.update(static_cast<double>(first));
  run.ranks->share_late(
      {.first = first, .last = documents.size()},
      [&](std::size_t n) -> PendingResult {
        capture_document(*session.decoder, n, documents[n], header, stream);
        return [&stream, n] { return UnitResult{stream.stored(n)}; };
      },
      [&](std::size_t n, const UnitResult& document) {
        writer->commit(document.record);
        progress.update(static_cast<double>(n + 1));
      });
}

}  // namespace

void run_capture(Arguments arguments) {
  const auto options = capture_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  const DType store = *dtype_from_name(options->text("store"));
  const auto states = states_of(*options);
  const std::filesystem::path out = options->text("out");
  // A run that was killed after its last rename has its output in place already; the writer knows its own.
  check_inputs_spared(std::span(&out, 1), *options);
  if (run.leads()) check_output(out, run.replace());
  const OutputLock lock(out, run.lock);

  auto source = open_model(*options);
  const auto layers = options->indices("layers", source->config().layers);
  const Corpus corpus = load_corpus(*options, run, *source);
  const auto documents = tokens_of(corpus);
  const CaptureHeader header = capture_header(source->config(), source->sha256(), layers, states, store,
                                              documents.front().size(), documents.size());
  const Json identity = run_identity(*options, source->sha256(), corpus);
  // Loading checks the device and every weight: nothing is left on disk if they will not do.
  ModelSession session = load_model(std::move(source), *options, run);
  require_agreement(run, identity, *session.backend);
  std::unique_ptr<CaptureWriter> writer;  // of rank 0
  if (run.leads()) {
    writer = CaptureWriter::open(out, header, identity, {.force = run.force, .resume = run.resume, .lock = false});
    drop_if_hopeless(out);
  }
  const auto first = run.ranks->tell(Json(writer ? writer->next_document() : 0)).get<std::size_t>();
  const auto left = static_cast<double>(documents.size() - first);
  announce({.flops = left * forward_flops(session.config(), static_cast<double>(header.tokens)),
            .memory_bytes = session_memory(session, header.tokens),
            .disk_bytes = static_cast<double>(capture_bytes(header))},
           *session.backend, run);
  if (first < documents.size()) capture_rest(session, documents, header, first, out, run, writer.get());
  if (!run.leads()) return;
  writer->finish();
  print_result(run,
               {{"out", out.string()},
                {"documents", documents.size()},
                {"tokens", header.tokens},
                {"layers", header.layers},
                {"bytes", capture_bytes(header)},
                {"resumed_at", first},
                {"tokens_dropped", corpus.tokens_dropped}},
               out.string() + ": " + std::to_string(documents.size()) + " documents of " +
                   std::to_string(header.tokens) + " tokens, " +
                   human_bytes(static_cast<double>(capture_bytes(header))) + "\n");
}

}  // namespace kvs
