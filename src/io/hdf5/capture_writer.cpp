// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <optional>
#include <random>
#include <utility>

#include "core/error.h"
#include "core/interrupt.h"
#include "io/descriptor.h"
#include "io/digest.h"
#include "io/file.h"
#include "io/hdf5/capture_convert.h"
#include "io/hdf5/capture_io.h"
#include "io/hdf5/capture_layout.h"
#include "io/hdf5/capture_part.h"
#include "io/hdf5/capture_paths.h"
#include "io/hdf5/capture_records.h"
#include "io/hdf5/capture_skeleton.h"
#include "io/journal.h"
#include "io/staged_output.h"

namespace kvs::inline io {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "captures are written as the numbers lie in memory");
constexpr std::int64_t kComplete = 1;

bool is_named(const fs::path& path) {
  struct stat status {};
  return find_link_status(path, status);
}

void remove_if_there(const fs::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    throw_errno(ErrorCode::kEnvironment, path, "cannot delete", errno);
}

std::string random_id() {
  std::random_device random;
  return checksum_text(random()) + checksum_text(random());
}

/// Returns line 0 of the journal: every fact that changes results is a top-level member, so that a conflict names it.
Json journal_identity(const CaptureHeader& header, const Json& run) {
  Json identity{{"format", "kvspectrum-capture-journal"}, {"version", kRecordVersion}};
  const Json fields = header_to_json(header);
  for (const auto& [key, value] : fields.items()) identity["capture." + key] = value;
  for (const auto& [key, value] : run.items()) identity[key] = value;
  return identity;
}

class CaptureFileWriter final : public CaptureWriter {
 public:
  CaptureFileWriter(CapturePaths paths, OutputLock lock, const CaptureHeader& header, CaptureLayout layout,
                    Json identity)
      : paths_(std::move(paths)),
        lock_(std::move(lock)),
        header_(header),
        identity_(std::move(identity)),
        part_(paths_.output, header, std::move(layout)) {}

  void start(bool replaces);
  void resume();
  void be_finished();

  std::uint64_t next_document() const noexcept override { return progress_.committed; }
  void begin_document(std::span<const std::int32_t> tokens) override;
  void write_states(std::int32_t layer, StateKind kind, TensorView<const float, 3> states) override;
  void write_stored(std::int32_t layer, StateKind kind, std::span<const std::byte> states) override;
  void write_nll(std::span<const float> nll) override;
  void commit_document() override;
  CapturePart& part() noexcept override { return part_; }
  Json layout() const override { return layout_record(progress_); }
  void commit(const Json& record) override;
  void finish() override;

 private:
  CaptureDocument& document();
  void check_stored(std::uint64_t document);
  void put_together();
  void move_into_place();

  CapturePaths paths_;
  std::optional<OutputLock> lock_;
  CaptureHeader header_;
  Json identity_;
  CaptureProgress progress_;
  CaptureFilePart part_;                       // writes to OUT.partial
  std::unique_ptr<CaptureDocument> document_;  // that begin_document() has begun
  bool finished_ = false;                      // OUT exists and comes from an equal run
  std::optional<Journal> journal_;
};

/// Creates OUT.partial with an empty journal. Leaves nothing behind on failure.
void CaptureFileWriter::start(bool replaces) {
  const fs::path directory = directory_of(paths_.output);
  remove_if_there(paths_.journal);
  sync_directory(directory);
  remove_if_there(paths_.partial);
  remove_if_there(paths_.fresh);
  progress_ = {};
  progress_.index = create_skeleton(paths_.fresh, header_, part_.layout(), progress_.complete_offset);
  progress_.replaces = replaces;
  progress_.run_id = random_id();
  try {
    part_.open(paths_.fresh, progress_.index.offsets);
    if (::fsync(part_.descriptor()) != 0) throw_errno(ErrorCode::kEnvironment, paths_.fresh, "cannot sync", errno);
    if (::rename(paths_.fresh.c_str(), paths_.partial.c_str()) != 0)
      throw_errno(ErrorCode::kEnvironment, paths_.partial, "cannot put the new file in place", errno);
    sync_directory(directory);
    journal_.emplace(Journal::create(paths_.journal, identity_));
    journal_->append(layout_record(progress_));
  } catch (...) {
    for (const fs::path& path : {paths_.journal, paths_.fresh, paths_.partial}) ::unlink(path.c_str());
    throw;
  }
}

void CaptureFileWriter::resume() {
  journal_.emplace(Journal::resume(paths_.journal, identity_));
  const bool replacing = is_named(paths_.output);
  if (replacing && journal_->records().empty()) refuse_existing(paths_.output);
  if (journal_->records().empty()) {
    journal_.reset();
    return start(false);
  }
  progress_ = progress_from_journal(journal_->records(), paths_.journal.native(), fs::file_size(paths_.partial));
  part_.open(paths_.partial, progress_.index.offsets);
  check_index(progress_.index, part_.layout(), header_.documents, paths_.journal.native());
  const auto ranges = metadata_ranges(progress_.index, paths_.journal.native());
  const std::string digest = metadata_digest(part_.descriptor(), paths_.partial, ranges, progress_.complete_offset);
  if (digest != progress_.index.metadata_sha256)
    throw Error(ErrorCode::kInput, paths_.partial.native(),
                "found metadata with SHA-256 " + digest + ", expected " + progress_.index.metadata_sha256 +
                    " as in the journal; --force starts again");
  if (replacing && !progress_.replaces) refuse_existing(paths_.output);
}

/// Removes what a kill after the last rename left behind. Nothing else remains to be done.
void CaptureFileWriter::be_finished() {
  progress_.committed = header_.documents;
  finished_ = true;
}

void CaptureFileWriter::begin_document(std::span<const std::int32_t> tokens) {
  document_ = part_.begin_document(progress_.committed, tokens);
}

CaptureDocument& CaptureFileWriter::document() {
  if (document_ == nullptr) throw Error(ErrorCode::kInternal, paths_.output.native(), "no document was begun");
  return *document_;
}

void CaptureFileWriter::commit_document() {
  commit(document().store());
  document_.reset();
}

void CaptureFileWriter::write_nll(std::span<const float> nll) { document().write_nll(nll); }

void CaptureFileWriter::write_stored(std::int32_t layer, StateKind kind, std::span<const std::byte> states) {
  document().write_stored(layer, kind, states);
}

void CaptureFileWriter::write_states(std::int32_t layer, StateKind kind, TensorView<const float, 3> states) {
  if (states.shape() != header_.shape_of(static_cast<std::size_t>(layer), kind))
    throw Error(ErrorCode::kInternal, paths_.output.native(), "states that this capture does not hold");
  if (header_.store == DType::kF32) return write_stored(layer, kind, std::as_bytes(states.span()));
  std::vector<std::byte> narrowed(states.size() * item_size(header_.store));
  narrow(header_.store, states.span(), narrowed.data());
  write_stored(layer, kind, narrowed);
}

void CaptureFileWriter::commit(const Json& record) {
  if (record.at("document") != progress_.committed)
    throw Error(ErrorCode::kInternal, paths_.output.native(), "documents were committed out of order");
  journal_->append(record);
  auto& checksums = progress_.index.checksums;
  for (const Json& checksum : record.at("crc32c")) checksums.push_back(checksum.get<std::uint32_t>());
  ++progress_.committed;
}

void CaptureFileWriter::check_stored(std::uint64_t document) {
  const auto& datasets = part_.layout().datasets;
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    const std::size_t at = document * datasets.size() + i;
    const std::uint32_t found =
        stored_checksum(part_.descriptor(), paths_.partial, progress_.index.offsets[at], datasets[i].bytes);
    if (found != progress_.index.checksums[at])
      throw Error(ErrorCode::kInput, part_.place(document, i),
                  "found CRC-32C " + checksum_text(found) + ", expected " +
                      checksum_text(progress_.index.checksums[at]) +
                      " as written: the disk changed the data; --force starts again");
  }
}

void CaptureFileWriter::finish() {
  if (progress_.committed != header_.documents)
    throw Error(ErrorCode::kInternal, paths_.output.native(), "finished before all documents were committed");
  if (!finished_) put_together();
  remove_if_there(paths_.journal);
  sync_directory(directory_of(paths_.output));
  journal_.reset();
  part_.close();
  lock_.reset();
}

void CaptureFileWriter::put_together() {
  for (std::uint64_t document = 0; document < header_.documents; ++document) {
    check_interrupt();
    check_stored(document);
  }
  write_at(part_.descriptor(), paths_.partial, std::as_bytes(std::span(&kComplete, 1)), progress_.complete_offset);
  part_.sync();
  const auto ranges = metadata_ranges(progress_.index, paths_.partial.native());
  progress_.index.metadata_sha256 = metadata_digest(part_.descriptor(), paths_.partial, ranges);
  write_file_atomically(paths_.manifest, dump_json(manifest_of(progress_.index, identity_), -1) + "\n", true);
  move_into_place();
}

void CaptureFileWriter::move_into_place() {
  int error = 0;
  if (!progress_.replaces)
    error = rename_to_new(paths_.partial, paths_.output);
  else if (::rename(paths_.partial.c_str(), paths_.output.c_str()) != 0)
    error = errno;
  if (error == EEXIST) refuse_existing(paths_.output);
  if (error != 0) throw_errno(ErrorCode::kEnvironment, paths_.output, "cannot put the new file in place", error);
  sync_directory(directory_of(paths_.output));
}

/// Returns true if OUT, which exists, has the layout of its manifest. @throws Error kInput if its size differs
bool is_whole(const CapturePaths& paths, const Json& manifest) {
  const std::string where = paths.manifest.native();
  struct stat status {};
  const Descriptor file = open_regular(paths.output, status);
  const CaptureIndex index = index_from_manifest(manifest, where, static_cast<std::uint64_t>(status.st_size));
  return metadata_digest(file.get(), paths.output, metadata_ranges(index, where)) == index.metadata_sha256;
}

enum class Beginning { kStart, kReplace, kResume, kFinished };

/// Returns how to continue if the run `identity` has finished: its capture is kept after a kill following the last
/// rename, and repeating the command does no harm. A missing or empty capture is made again. Returns nullopt if OUT is
/// not from that run.
std::optional<Beginning> beginning_after_end(const CapturePaths& paths, const Json& identity) {
  if (!is_named(paths.manifest)) return std::nullopt;
  const Json manifest = parse_json(read_text_file(paths.manifest, kMaxManifestBytes), paths.manifest.native());
  if (!manifest.is_object() || !manifest.contains("identity") || manifest["identity"] != identity) return std::nullopt;
  std::error_code error;
  if (!is_named(paths.output) || (fs::is_empty(paths.output, error) && !error)) return Beginning::kReplace;
  return is_whole(paths, manifest) ? std::optional(Beginning::kFinished) : std::nullopt;
}

/// Refuses to replace an output or an unfinished run without being asked to.
Beginning decide(const CapturePaths& paths, const CaptureWriter::Options& options, const Json& identity) {
  const bool unfinished = is_named(paths.journal) && is_named(paths.partial);
  if (options.resume && unfinished) return Beginning::kResume;
  if (options.resume)
    if (const auto beginning = beginning_after_end(paths, identity)) return *beginning;
  if (options.force) return Beginning::kStart;
  if (is_named(paths.output)) refuse_existing(paths.output);
  if (unfinished)
    throw Error(ErrorCode::kConflict, paths.partial.native(),
                "an unfinished capture exists; --resume goes on with it, --force discards it");
  if (is_named(paths.manifest)) refuse_existing(paths.manifest);
  return Beginning::kStart;
}

}  // namespace

std::unique_ptr<CaptureWriter> CaptureWriter::open(const fs::path& output, const CaptureHeader& header,
                                                   const Json& identity, const Options& options) {
  CaptureLayout layout = layout_of(header, output.native());
  check_output(output, options.force || options.resume);
  const CapturePaths paths(resolve_output(output));
  OutputLock lock(paths.output, options.lock);
  const Json whole = journal_identity(header, identity);
  const Beginning beginning = decide(paths, options, whole);
  auto writer = std::make_unique<CaptureFileWriter>(paths, std::move(lock), header, std::move(layout), whole);
  if (beginning == Beginning::kResume)
    writer->resume();
  else if (beginning == Beginning::kFinished)
    writer->be_finished();
  else
    writer->start(options.force || beginning == Beginning::kReplace);
  return writer;
}

}  // namespace kvs::inline io
