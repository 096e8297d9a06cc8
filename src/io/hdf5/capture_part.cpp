#include "io/hdf5/capture_part.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/error.h"
#include "io/digest.h"
#include "io/file.h"
#include "io/hdf5/capture_convert.h"
#include "io/hdf5/capture_io.h"
#include "io/hdf5/capture_paths.h"
#include "io/hdf5/capture_records.h"
#include "io/journal.h"

namespace kvs::inline io {

void CaptureFilePart::open(const std::filesystem::path& path, std::vector<std::uint64_t> offsets) {
  path_ = path;
  offsets_ = std::move(offsets);
  file_.emplace(open_descriptor(path, O_RDWR | O_NOFOLLOW));
  if (!file_->is_open()) throw_errno(ErrorCode::kEnvironment, path, "cannot open", errno);
}

void CaptureFilePart::begin_document(std::uint64_t document, std::span<const std::int32_t> tokens) {
  if (document >= header_.documents)
    throw Error(ErrorCode::kInternal, output_.native(),
                "found document " + std::to_string(document) + ", expected fewer");
  document_ = document;
  checksums_.assign(layout_.datasets.size(), 0);
  written_.assign(layout_.datasets.size(), 0);
  write_dataset(0, std::as_bytes(tokens));
}

void CaptureFilePart::write_nll(std::span<const float> nll) { write_dataset(1, std::as_bytes(nll)); }

void CaptureFilePart::write_stored(std::int32_t layer, StateKind kind, std::span<const std::byte> states) {
  const auto dataset = dataset_of(header_, layer, kind);
  if (!dataset || states.size() != layout_.datasets[*dataset].bytes)
    throw Error(ErrorCode::kInternal, output_.native(), "states that this capture does not hold");
  const std::size_t count = states.size() / item_size(header_.store);
  if (const std::size_t bad = find_non_finite(header_.store, states.data(), count); bad != count) {
    float value = 0;
    widen(header_.store, states.data() + bad * item_size(header_.store), {&value, 1});
    throw Error(ErrorCode::kData, place(document_, *dataset),
                "layer " + std::to_string(layer) + ", " + position_text(header_, static_cast<std::size_t>(layer), bad) +
                    ": found " + std::to_string(value) + " as " + std::string(name_of(header_.store)) +
                    ", expected a finite number");
  }
  write_dataset(*dataset, states);
}

void CaptureFilePart::write_dataset(std::size_t dataset, std::span<const std::byte> bytes) {
  if (written_.empty() || written_[dataset] != 0 || bytes.size() != layout_.datasets[dataset].bytes)
    throw Error(ErrorCode::kInternal, place(document_, dataset),
                "expected " + std::to_string(layout_.datasets[dataset].bytes) + " bytes once in a document, found " +
                    std::to_string(bytes.size()));
  write_at(descriptor(), path_, bytes, offsets_[document_ * layout_.datasets.size() + dataset]);
  checksums_[dataset] = crc32c(bytes);
  written_[dataset] = 1;
}

Json CaptureFilePart::store_document() {
  const auto missing = std::ranges::find(written_, 0);
  if (written_.empty() || missing != written_.end())
    throw Error(ErrorCode::kInternal, output_.native(), "a document was committed before it was written");
  // Not called again after a failure: the kernel may have dropped the pages that it could not write.
  if (::fdatasync(descriptor()) != 0) throw_errno(ErrorCode::kEnvironment, path_, "cannot sync", errno);
  written_.clear();
  return document_record(document_, header_.tokens, checksums_);
}

std::unique_ptr<CapturePart> CapturePart::open(const std::filesystem::path& output, const CaptureHeader& header,
                                               const Json& layout) {
  const CapturePaths paths(resolve_output(output));
  const std::string where = paths.partial.native();
  const auto foreign = [&](const std::string& found) {
    throw Error(ErrorCode::kEnvironment, where, found + ", expected the file of rank 0: all ranks need one folder");
  };
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(paths.partial, error);
  if (error || !std::filesystem::exists(paths.journal)) foreign("found none");
  const std::vector<Json> records = Journal::read(paths.journal).records;
  if (records.empty() || records.front() != layout) foreign("found the file of another run");  // by its run_id
  CaptureProgress progress = progress_from_journal(std::span(&layout, 1), where, bytes);
  auto part = std::make_unique<CaptureFilePart>(paths.output, header, layout_of(header, output.native()));
  check_index(progress.index, part->layout(), header.documents, where);
  part->open(paths.partial, std::move(progress.index.offsets));
  return part;
}

}  // namespace kvs::inline io
