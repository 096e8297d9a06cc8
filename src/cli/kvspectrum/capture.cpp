#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/common/session.h"
#include "cli/kvspectrum/commands.h"
#include "core/error.h"
#include "core/nearest.h"
#include "io/file.h"
#include "ranks/one_process.h"
#include "ranks/watch.h"
#include "states/capture_run.h"
#include "states/capture_split.h"
#include "states/capture_stream.h"

namespace kvs {
namespace {

StateSet states_of(const Options& options) {
  const std::vector<std::string> names = options.words("states");
  StateSet states;
  for (const std::string& name : names) {
    const auto kind = state_kind_from_name(name);
    if (!kind)
      throw Error(ErrorCode::kUsage, "--states",
                  "found '" + name + "', expected any of q_pre,k_pre,k_post,v" +
                      did_you_mean(name, std::vector<std::string>{"q_pre", "k_pre", "k_post", "v"}));
    states.insert(*kind);
  }
  if (states.size() != names.size())
    throw Error(ErrorCode::kUsage, "--states",
                "found '" + options.text("states") + "', expected each state at most once");
  return states;
}

OptionTable capture_options() {
  OptionTable table("kvspectrum capture --model PATH --text PATH --out FILE [options]",
                    "Runs texts through a model and stores queries, keys and values of every layer in one HDF5 file.",
                    {"kvspectrum capture --model SmolLM2.gguf --text book.txt --documents 8 --out book.h5",
                     "kvspectrum capture --model llama/ --text book.txt --states q_pre,k_pre --layers 0,14-16 "
                     "--store bf16 --out book.h5"});
  table.value("out", "FILE", "the capture to write")
      .required()
      .value("states", "LIST", "any of q_pre,k_pre,k_post,v", "k_pre,v")
      .value("layers", "LAYERS", "such as 0,14-16", "all")
      .value("store", "f32|f16|bf16", "type of the stored states", "f32")
      .value("split", "N", "N files instead of one, OUT-00001-of-0000N.h5 and so on, which kvspectrum merge joins")
      .from(1, kMostSplitParts)
      .check([](const Options& options) { (void)states_of(options); });
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, true);
  return table;
}

/// What is to be captured.
struct CaptureJob {
  std::span<const std::vector<std::int32_t>> documents;
  CaptureHeader header;
  Json identity;
  CaptureWriter::Options options;
};

void announce_rest(const ModelSession& session, const CaptureJob& job, std::size_t documents, const RunOptions& run) {
  const auto tokens = static_cast<double>(job.header.tokens);
  announce({.flops = static_cast<double>(documents) * forward_flops(session.config(), tokens),
            .memory_bytes = session_memory(session, job.header.tokens),
            .disk_bytes = static_cast<double>(capture_bytes(job.header))},
           *session.backend, run);
}

/// Documents from `first` on. Ranks write theirs into the one file that rank 0 has laid out.
/// @param writer  nullptr but on rank 0
/// @param done    is told the documents in place
void write_documents(const ModelSession& session, const CaptureJob& job, std::size_t first, CapturePart& part,
                     CaptureWriter* writer, Ranks& ranks, const std::function<void(std::size_t)>& done) {
  CaptureStream stream(*session.backend, part, job.header);
  ranks.share_late(
      {.first = first, .last = job.documents.size()},
      [&](std::size_t n) -> PendingResult {
        capture_document(*session.decoder, n, job.documents[n], job.header, stream);
        return [&stream, n] { return UnitResult{stream.stored(n)}; };
      },
      [&](std::size_t n, const UnitResult& document) {
        writer->commit(document.record);
        done(n + 1);
      });
}

/// One file. @return the documents that a run before has captured
std::size_t capture_whole(const ModelSession& session, const CaptureJob& job, const std::filesystem::path& out,
                          const RunOptions& run) {
  std::unique_ptr<CaptureWriter> writer;  // of rank 0
  if (run.leads()) {
    writer = CaptureWriter::open(out, job.header, job.identity, job.options);
    drop_if_hopeless(out);
  }
  const auto first = run.ranks->tell(Json(writer ? writer->next_document() : 0)).get<std::size_t>();
  announce_rest(session, job, job.documents.size() - first, run);
  if (first < job.documents.size()) {
    const Json layout = run.ranks->tell(writer ? writer->layout() : Json());
    const auto others = writer ? nullptr : CapturePart::open(out, job.header, layout);
    run.ranks->gather(Json());  // no document before all ranks have found the file
    Progress progress("capture", static_cast<double>(job.documents.size()), run.quiet);
    progress.update(static_cast<double>(first));
    write_documents(session, job, first, writer ? writer->part() : *others, writer.get(), *run.ranks,
                    [&](std::size_t done) { progress.update(static_cast<double>(done)); });
  }
  if (writer) writer->finish();
  return first;
}

/// One file for each part, each written by one rank. @return as above, on rank 0
std::size_t capture_parts(const ModelSession& session, const CaptureJob& job, const CaptureSplit& split,
                          const std::filesystem::path& out, const RunOptions& run) {
  announce_rest(session, job, split.documents, run);
  if (split.parts < run.ranks->size() && run.ranks->size() <= split.documents)
    remark("note: " + std::to_string(run.ranks->size()) + " ranks share fewer files (" + std::to_string(split.parts) +
               "): those that get none wait for the others",
           run.quiet);
  std::size_t found = 0;
  Progress progress("capture", static_cast<double>(split.documents), run.quiet);
  progress.update(0);
  run.ranks->share(
      {.last = split.parts},
      [&](std::size_t part) {
        const std::size_t before = split.first(part), size = split.first(part + 1) - before;
        const CaptureJob own{job.documents.subspan(before, size), split.header(job.header, part),
                             split.identity(job.identity, part), job.options};
        const auto writer = CaptureWriter::open(split.path(out, part), own.header, own.identity, own.options);
        drop_if_hopeless(split.path(out, part));
        const std::size_t first = writer->next_document();
        const auto alone = make_one_process();
        note_document(before + first);
        if (first < size)
          write_documents(session, own, first, writer->part(), writer.get(), *alone,
                          [&](std::size_t done) { note_document(before + done); });
        writer->finish();
        return UnitResult{Json(first)};
      },
      [&](std::size_t part, const UnitResult& result) {
        found += result.record.get<std::size_t>();
        progress.update(static_cast<double>(split.first(part + 1)));
      });
  return found;
}

/// A run with another --split would begin anew beside what this one has kept.
void settle_other_splits(const std::filesystem::path& out, std::span<const std::filesystem::path> files,
                         const RunOptions& run) {
  for (const std::filesystem::path& kept : unfinished_other_splits(out, files)) {
    if (!run.force)
      throw Error(ErrorCode::kConflict, kept.string(),
                  "found an unfinished run with another --split, expected the same --split to go on or --force to drop "
                  "it");
    std::filesystem::path file = kept;
    while (file.extension() != out.extension()) file.replace_extension();
    const OutputLock lock(file);  // which no process holds that is alive
    std::filesystem::remove(kept);
  }
}

}  // namespace

void run_capture(Arguments arguments) {
  const auto options = capture_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  const DType store = *dtype_from_name(options->text("store"));
  const auto states = states_of(*options);
  const std::filesystem::path out = options->text("out");
  const bool splits = options->has("split");
  CaptureSplit split;
  if (splits) split.parts = static_cast<std::size_t>(options->integer("split", 1, kMostSplitParts));
  const std::vector<std::filesystem::path> files = splits ? split.paths(out) : std::vector{out};
  // A run that was killed after its last rename has its output in place already; the writer knows its own.
  check_inputs_spared(files, *options, files.size());
  if (run.leads()) {
    for (const auto& file : files) check_output(file, run.replace());
    settle_other_splits(out, files, run);
  }
  const OutputLock lock(out, run.lock && !splits);

  auto source = open_model(*options);
  const auto layers = options->indices("layers", source->config().layers);
  const Corpus corpus = load_corpus(*options, run, *source);
  const auto documents = tokens_of(corpus);
  split.documents = documents.size();
  if (split.parts > documents.size())
    throw Error(ErrorCode::kUsage, "--split",
                "found " + std::to_string(split.parts) + ", expected at most the " + std::to_string(documents.size()) +
                    " documents");
  CaptureJob job{documents,
                 capture_header(source->config(), source->sha256(), layers, states, store, documents.front().size(),
                                documents.size()),
                 run_identity(*options, *source, corpus),
                 {.force = run.force, .resume = run.resume, .lock = splits && !options->flag("no-lock")}};
  if (!corpus.tokenizer_sha256.empty()) job.identity["tokenizer_sha256"] = corpus.tokenizer_sha256;
  job.identity["options"].erase("split");  // a part's identity says which it is
  // Loading checks the device and every weight: nothing is left on disk if they will not do.
  const ModelSession session = load_model(std::move(source), *options, run);
  require_agreement(run, job.identity, *session.backend);
  const std::size_t found =
      splits ? capture_parts(session, job, split, out, run) : capture_whole(session, job, out, run);
  if (!run.leads()) return;
  const std::uint64_t bytes = capture_bytes(job.header);
  Json result{{"out", out.string()},
              {"documents", documents.size()},
              {"tokens", job.header.tokens},
              {"layers", job.header.layers},
              {"bytes", bytes},
              {"resumed_at", found},
              {"tokens_dropped", corpus.tokens_dropped}};
  if (splits) result["files"] = std::vector<std::string>(files.begin(), files.end());
  print_result(run, result,
               files.front().string() + (files.size() > 1 ? " … " + files.back().string() : "") + ": " +
                   std::to_string(documents.size()) + " documents of " + std::to_string(job.header.tokens) +
                   " tokens, " + human_bytes(static_cast<double>(bytes)) + "\n");
}

}  // namespace kvs
