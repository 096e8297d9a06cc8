// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "core/error.h"
#include "io/digest.h"
#include "io/hdf5/capture_convert.h"
#include "io/hdf5/capture_io.h"
#include "io/hdf5/capture_open.h"
#include "io/hdf5/capture_paths.h"

namespace kvs::inline io {
namespace {

class CaptureFileReader final : public CaptureReader {
 public:
  CaptureFileReader(OpenCapture capture, const Options& options)
      : capture_(std::move(capture)), options_(options), buffer_(kCaptureBlock) {
    ::posix_fadvise(capture_.file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  }

  const CaptureHeader& header() const noexcept override { return capture_.header; }
  const Json& identity() const noexcept override { return capture_.identity; }
  bool has_checksums() const noexcept override { return capture_.trust != CaptureTrust::kNone; }
  std::string sha256() override;
  std::uint64_t documents() const noexcept override { return capture_.documents; }
  std::vector<std::int32_t> tokens(std::uint64_t document) override {
    std::vector<std::int32_t> values(capture_.header.tokens);
    read_whole(document, 0, std::as_writable_bytes(std::span(values)));
    return values;
  }
  std::vector<float> nll(std::uint64_t document) override {
    std::vector<float> values(capture_.header.tokens - 1);
    read_whole(document, 1, std::as_writable_bytes(std::span(values)));
    return values;
  }
  bool read_states(std::uint64_t document, std::int32_t layer, StateKind kind, TensorView<float, 3> out) override;
  std::vector<std::byte> read_stored(std::uint64_t document, std::int32_t layer, StateKind kind) override;

 private:
  std::size_t find_dataset(std::int32_t layer, StateKind kind) const {
    const auto dataset = dataset_of(capture_.header, layer, kind);
    if (!dataset) throw Error(ErrorCode::kInternal, capture_.path.native(), "states that this capture does not hold");
    return *dataset;
  }
  void check_document(std::uint64_t document) const {
    if (document >= capture_.documents)
      throw Error(ErrorCode::kInternal, capture_.path.native(), "no document " + std::to_string(document));
  }
  void read_whole(std::uint64_t document, std::size_t dataset, std::span<std::byte> out);
  std::size_t read_block(std::uint64_t offset, std::span<float> out, std::uint32_t& checksum);
  bool is_sound(std::uint64_t document, std::size_t dataset, std::uint32_t found) const;

  OpenCapture capture_;
  Options options_;
  std::vector<std::byte> buffer_;
};

std::string CaptureFileReader::sha256() {
  Sha256 digest;
  digest.update(dump_json(header_to_json(capture_.header), -1));
  if (has_checksums()) {
    digest.update(std::as_bytes(std::span(capture_.index.checksums)));
  } else {
    for (std::uint64_t document = 0; document < documents(); ++document) {
      const std::vector<std::int32_t> values = tokens(document);
      digest.update(std::as_bytes(std::span(values)));
    }
  }
  return digest.finish();
}

/// Returns true if the checksum equals the recorded one, or if there are no checksums because the manifest is missing.
bool CaptureFileReader::is_sound(std::uint64_t document, std::size_t dataset, std::uint32_t found) const {
  return !has_checksums() || found == capture_.index.checksums[document * capture_.layout.datasets.size() + dataset];
}

[[noreturn]] void throw_damaged(const OpenCapture& capture, std::uint64_t document, std::size_t dataset,
                                std::uint32_t found) {
  const std::uint32_t expected = capture.index.checksums[document * capture.layout.datasets.size() + dataset];
  throw Error(
      ErrorCode::kInput, capture.place(document, dataset),
      "found CRC-32C " + checksum_text(found) + ", expected " + checksum_text(expected) + ": the data are damaged");
}

void CaptureFileReader::read_whole(std::uint64_t document, std::size_t dataset, std::span<std::byte> out) {
  check_document(document);
  read_at(capture_.file.get(), capture_.path, out, capture_.offset(document, dataset));
  const std::uint32_t found = crc32c(out);
  if (!is_sound(document, dataset, found)) throw_damaged(capture_, document, dataset, found);
}

/// Reads out.size() numbers (directly into `out` if they are stored as f32) and continues their checksum.
/// @return index of the first number that is not finite, or out.size()
std::size_t CaptureFileReader::read_block(std::uint64_t offset, std::span<float> out, std::uint32_t& checksum) {
  const DType store = capture_.header.store;
  const std::span<std::byte> bytes =
      store == DType::kF32 ? std::as_writable_bytes(out) : std::span(buffer_).first(out.size() * item_size(store));
  read_at(capture_.file.get(), capture_.path, bytes, offset);
  checksum = crc32c(bytes, checksum);
  if (store != DType::kF32) widen(store, bytes.data(), out);
  return find_non_finite(store, bytes.data(), out.size());
}

bool CaptureFileReader::read_states(std::uint64_t document, std::int32_t layer, StateKind kind,
                                    TensorView<float, 3> out) {
  check_document(document);
  const CaptureHeader& header = capture_.header;
  const std::size_t dataset = find_dataset(layer, kind);
  if (out.shape() != header.shape_of(static_cast<std::size_t>(layer), kind))
    throw Error(ErrorCode::kInternal, capture_.path.native(), "states that this capture does not hold");
  const std::size_t block = kCaptureBlock / item_size(header.store), size = out.size();
  std::uint32_t checksum = 0;
  std::size_t bad = size;
  for (std::size_t first = 0; first < size; first += block) {
    const std::span<float> part = out.span().subspan(first, std::min(block, size - first));
    const std::size_t found =
        read_block(capture_.offset(document, dataset) + first * item_size(header.store), part, checksum);
    if (found != part.size()) bad = std::min(bad, first + found);
  }
  if (!is_sound(document, dataset, checksum)) {
    if (options_.skip_corrupt) return false;
    throw_damaged(capture_, document, dataset, checksum);
  }
  if (bad != size)
    throw Error(ErrorCode::kData, capture_.place(document, dataset),
                "layer " + std::to_string(layer) + ", " + position_text(header, static_cast<std::size_t>(layer), bad) +
                    ": found " + std::to_string(out.data()[bad]) + ", expected finite numbers");
  return true;
}

std::vector<std::byte> CaptureFileReader::read_stored(std::uint64_t document, std::int32_t layer, StateKind kind) {
  const std::size_t dataset = find_dataset(layer, kind);
  std::vector<std::byte> bytes(capture_.layout.datasets[dataset].bytes);
  read_whole(document, dataset, bytes);
  return bytes;
}

std::string_view name_of(CaptureTrust trust) noexcept {
  return trust == CaptureTrust::kJournal ? "journal" : "manifest";
}

}  // namespace

std::unique_ptr<CaptureReader> CaptureReader::open(const std::filesystem::path& path, const Options& options) {
  return std::make_unique<CaptureFileReader>(open_capture(path, options.allow_incomplete, false), options);
}

std::uint64_t verify_capture(const std::filesystem::path& path, const CaptureReader::Options& options, Json& report) {
  const OpenCapture capture = open_capture(path, options.allow_incomplete, true);
  if (capture.trust == CaptureTrust::kNone)
    throw Error(ErrorCode::kInput, CapturePaths(path).manifest.native(),
                "is missing, expected the checksums of " + path.native() +
                    ": its structure is valid, but its data cannot be checked");
  const std::size_t datasets = capture.layout.datasets.size();
  Json damaged = Json::array();
  for (std::uint64_t document = 0; document < capture.documents; ++document)
    for (std::size_t i = 0; i < datasets; ++i) {
      const std::uint32_t found = stored_checksum(capture.file.get(), capture.path, capture.offset(document, i),
                                                  capture.layout.datasets[i].bytes);
      if (found == capture.index.checksums[document * datasets + i]) continue;
      damaged.push_back(Json{{"dataset", document_group(document) + "/" + capture.layout.datasets[i].name},
                             {"offset", capture.offset(document, i)},
                             {"bytes", capture.layout.datasets[i].bytes},
                             {"found_crc32c", checksum_text(found)},
                             {"expected_crc32c", checksum_text(capture.index.checksums[document * datasets + i])}});
    }
  const std::uint64_t count = damaged.size();
  report = Json{{"file", capture.path.native()},
                {"bytes", capture.index.file_bytes},
                {"complete", capture.trust != CaptureTrust::kJournal},
                {"documents", capture.documents},
                {"documents_planned", capture.header.documents},
                {"datasets", capture.documents * datasets},
                {"checked_against", name_of(capture.trust)},
                {"damaged", std::move(damaged)}};
  return count;
}

}  // namespace kvs::inline io
