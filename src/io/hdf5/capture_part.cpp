// SPDX-License-Identifier: Apache-2.0
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
namespace {

/// Writes each dataset of a document once.
class CaptureFileDocument final : public CaptureDocument {
 public:
  CaptureFileDocument(const CaptureFilePart& part, std::uint64_t document, std::span<const std::int32_t> tokens)
      : part_(&part), document_(document), checksums_(datasets().size()), written_(datasets().size()) {
    write(0, std::as_bytes(tokens));
  }

  void write_stored(std::int32_t layer, StateKind kind, std::span<const std::byte> states) override;
  void write_nll(std::span<const float> nll) override { write(1, std::as_bytes(nll)); }
  Json store() override;

 private:
  const std::vector<CaptureDataset>& datasets() const noexcept { return part_->layout().datasets; }
  void write(std::size_t dataset, std::span<const std::byte> bytes);

  const CaptureFilePart* part_;
  std::uint64_t document_;
  std::vector<std::uint32_t> checksums_;  // [dataset]
  std::vector<std::uint8_t> written_;     // [dataset], bytes that threads set
};

void CaptureFileDocument::write_stored(std::int32_t layer, StateKind kind, std::span<const std::byte> states) {
  const CaptureHeader& header = part_->header();
  const auto dataset = dataset_of(header, layer, kind);
  if (!dataset || states.size() != datasets()[*dataset].bytes)
    throw Error(ErrorCode::kInternal, part_->place(document_, dataset.value_or(0)),
                "states that this capture does not hold");
  const std::size_t count = states.size() / item_size(header.store);
  if (const std::size_t bad = find_non_finite(header.store, states.data(), count); bad != count) {
    float value = 0;
    widen(header.store, states.data() + bad * item_size(header.store), {&value, 1});
    throw Error(ErrorCode::kData, part_->place(document_, *dataset),
                "layer " + std::to_string(layer) + ", " + position_text(header, static_cast<std::size_t>(layer), bad) +
                    ": found " + std::to_string(value) + " as " + std::string(name_of(header.store)) +
                    ", expected a finite number");
  }
  write(*dataset, states);
}

void CaptureFileDocument::write(std::size_t dataset, std::span<const std::byte> bytes) {
  if (written_[dataset] != 0 || bytes.size() != datasets()[dataset].bytes)
    throw Error(ErrorCode::kInternal, part_->place(document_, dataset),
                "expected " + std::to_string(datasets()[dataset].bytes) + " bytes once in a document, found " +
                    std::to_string(bytes.size()));
  part_->write(document_, dataset, bytes);
  checksums_[dataset] = crc32c(bytes);
  written_[dataset] = 1;
}

Json CaptureFileDocument::store() {
  const auto missing = std::ranges::find(written_, 0);
  if (missing != written_.end())
    throw Error(ErrorCode::kInternal, part_->place(document_, static_cast<std::size_t>(missing - written_.begin())),
                "a document was committed before it was written");
  part_->sync();
  return document_record(document_, part_->header().tokens, checksums_);
}

}  // namespace

void CaptureFilePart::open(const std::filesystem::path& path, std::vector<std::uint64_t> offsets) {
  path_ = path;
  offsets_ = std::move(offsets);
  file_.emplace(open_descriptor(path, O_RDWR | O_NOFOLLOW));
  if (!file_->is_open()) throw_errno(ErrorCode::kEnvironment, path, "cannot open", errno);
}

void CaptureFilePart::write(std::uint64_t document, std::size_t dataset, std::span<const std::byte> bytes) const {
  write_at(descriptor(), path_, bytes, offsets_[document * layout_.datasets.size() + dataset]);
}

/// Not called again after a failure: the kernel may have dropped the pages that it could not write.
void CaptureFilePart::sync() const {
  if (::fdatasync(descriptor()) != 0) throw_errno(ErrorCode::kEnvironment, path_, "cannot sync", errno);
}

std::unique_ptr<CaptureDocument> CaptureFilePart::begin_document(std::uint64_t document,
                                                                 std::span<const std::int32_t> tokens) {
  if (document >= header_.documents)
    throw Error(ErrorCode::kInternal, output_.native(),
                "found document " + std::to_string(document) + ", expected fewer");
  return std::make_unique<CaptureFileDocument>(*this, document, tokens);
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
