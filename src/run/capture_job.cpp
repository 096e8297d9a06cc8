// SPDX-License-Identifier: Apache-2.0
#include "run/capture_job.h"

#include <functional>
#include <memory>

#include "core/error.h"
#include "io/file.h"
#include "model/passes_together.h"
#include "ranks/one_process.h"
#include "ranks/watch.h"
#include "run/kept_state.h"
#include "run/progress.h"
#include "states/capture_run.h"
#include "states/capture_stream.h"

namespace kvs::inline run {
namespace {

void print_estimate_of(const CaptureJob& job, std::size_t documents, const Run& run) {
  const auto tokens = static_cast<double>(job.header.tokens);
  run.print_estimate({.flops = static_cast<double>(documents) * forward_flops(run.config(), tokens),
                      .memory_bytes = session_memory(run.session(), job.header.tokens),
                      .disk_bytes = static_cast<double>(capture_bytes(job.header))});
}

/// Writes the documents from `first` on. Each rank writes its documents into the file that rank 0 has laid out.
/// @param writer  nullptr on ranks other than 0
/// @param done    called with the number of documents in place
void write_documents(const Run& run, const CaptureJob& job, std::size_t first, CapturePart& part, CaptureWriter* writer,
                     Ranks& ranks, const std::function<void(std::size_t)>& done) {
  CaptureStream stream(run.backend(), part, job.header);
  ranks.share_late(
      {.first = first,
       .last = job.documents.size(),
       .together = passes_together(run.decoder().model(), job.header.tokens)},
      [&](std::size_t n) -> PendingResult {
        capture_document(run.decoder(), n, job.documents[n], job.header, stream);
        return [&stream, n] { return UnitResult{stream.stored(n)}; };
      },
      [&](std::size_t n, const UnitResult& document) {
        writer->commit(document.record);
        done(n + 1);
      });
}

/// Writes one part; only this rank does. @return the number of documents that an earlier run has captured
std::size_t capture_part(const Run& run, const CaptureJob& job, const CaptureSplit& split, std::size_t part,
                         const std::filesystem::path& out) {
  const std::size_t before = split.first(part), size = split.first(part + 1) - before;
  const CaptureJob own{job.documents.subspan(before, size), split.header(job.header, part),
                       split.identity(job.identity, part), job.options};
  const auto writer = CaptureWriter::open(split.path(out, part), own.header, own.identity, own.options);
  discard_state_on_error(split.path(out, part));
  const std::size_t first = writer->next_document();
  const auto alone = make_one_process();
  note_document(before + first);
  if (first < size)
    write_documents(run, own, first, writer->part(), writer.get(), *alone,
                    [&](std::size_t done) { note_document(before + done); });
  writer->finish();
  return first;
}

/// Rejects unfinished runs with another --parts, because this run would start anew next to their state. Removes their
/// state with --force.
void settle_other_splits(const std::filesystem::path& out, std::span<const std::filesystem::path> files,
                         const RunOptions& run) {
  for (const std::filesystem::path& kept : unfinished_other_splits(out, files)) {
    if (!run.force)
      throw Error(ErrorCode::kConflict, kept.string(),
                  "found an unfinished run with another --parts, expected the same --parts to go on or --force to drop "
                  "it");
    std::filesystem::path file = kept;
    while (file.extension() != out.extension()) file.replace_extension();
    const OutputLock lock(file);  // fails if a running process holds the lock
    std::filesystem::remove(kept);
  }
}

}  // namespace

std::vector<std::filesystem::path> checked_files(const CaptureSplit& split, const std::filesystem::path& out,
                                                 const Run& run) {
  std::vector<std::filesystem::path> files = split.parts > 0 ? split.paths(out) : std::vector{out};
  check_inputs_spared(files, run.options(), files.size());
  if (!run.is_root()) return files;
  for (const auto& file : files) check_output(file, run.settings().replace());
  settle_other_splits(out, files, run.settings());
  return files;
}

std::size_t capture_whole(const Run& run, const CaptureJob& job, const std::filesystem::path& out) {
  std::unique_ptr<CaptureWriter> writer;  // of rank 0
  if (run.is_root()) {
    writer = CaptureWriter::open(out, job.header, job.identity, job.options);
    discard_state_on_error(out);
  }
  const auto first = run.ranks().broadcast(Json(writer ? writer->next_document() : 0)).get<std::size_t>();
  print_estimate_of(job, job.documents.size() - first, run);
  if (first < job.documents.size()) {
    const Json layout = run.ranks().broadcast(writer ? writer->layout() : Json());
    const auto others = writer ? nullptr : CapturePart::open(out, job.header, layout);
    run.ranks().gather(Json());  // no document before all ranks have found the file
    Progress progress("capture", job.documents.size(), run.quiet());
    progress.update(static_cast<double>(first));
    write_documents(run, job, first, writer ? writer->part() : *others, writer.get(), run.ranks(), progress.counter());
  }
  if (writer) writer->finish();
  return first;
}

std::size_t capture_parts(const Run& run, const CaptureJob& job, const CaptureSplit& split,
                          const std::filesystem::path& out) {
  print_estimate_of(job, split.documents, run);
  const std::size_t ranks = run.ranks().size();
  if (split.parts < ranks && ranks <= split.documents)
    run.note(std::to_string(ranks) + " ranks share fewer files (" + std::to_string(split.parts) +
             "): those that get none wait for the others");
  std::size_t found = 0;
  Progress progress("capture", split.documents, run.quiet());
  progress.update(0);
  run.ranks().share(
      {.last = split.parts},
      [&](std::size_t part) { return UnitResult{Json(capture_part(run, job, split, part, out))}; },
      [&](std::size_t part, const UnitResult& result) {
        found += result.record.get<std::size_t>();
        progress.update(static_cast<double>(split.first(part + 1)));
      });
  return found;
}

}  // namespace kvs::inline run
