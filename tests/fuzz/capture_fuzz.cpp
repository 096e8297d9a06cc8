// SPDX-License-Identifier: Apache-2.0
// The claims of a capture's manifest, journal and attributes: an accepted input describes a file whose datasets lie
// inside it without overlapping, and reads back the same after being written. (libhdf5 itself never meets an unchecked
// file outside an isolated child.)
#include "io/hdf5/capture_layout.h"
#include "io/hdf5/capture_records.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using kvs::Json;
using kvs::fuzz::require;

/// Datasets and the gaps between them fill the file exactly.
void check_ranges(const kvs::CaptureIndex& index) {
  std::uint64_t data = 0, rest = 0, at = 0;
  for (std::size_t i = 0; i < index.offsets.size(); ++i) data += index.bytes[i % index.bytes.size()];
  for (const auto& [first, last] : kvs::metadata_ranges(index, "input")) {
    require(first >= at && last > first && last <= index.file_bytes, "range out of order");
    rest += last - first;
    at = last;
  }
  require(data + rest == index.file_bytes, "ranges and datasets do not fill the file");
}

void check_header(const Json& value) {
  const kvs::CaptureHeader header = kvs::header_from_json(kvs::JsonCursor(value, "input"));
  const kvs::CaptureLayout layout = kvs::layout_of(header, "input");
  require(layout.datasets.size() == 2 + header.layers.size() * header.states.size(), "datasets");
  for (const std::int32_t layer : header.layers)
    for (const kvs::StateKind kind : header.states)
      require(kvs::dataset_of(header, layer, kind).value() < layout.datasets.size(), "dataset_of");
  const Json written = kvs::header_to_json(header);
  require(kvs::header_to_json(kvs::header_from_json(kvs::JsonCursor(written, "again"))) == written, "changed");
}

void check_manifest(const Json& value, std::uint64_t file_bytes) {
  const kvs::CaptureIndex index = kvs::index_from_manifest(value, "input", file_bytes);
  check_ranges(index);
  kvs::states_of(index.names);
  const kvs::CaptureIndex again = kvs::index_from_manifest(kvs::manifest_of(index, Json()), "again", file_bytes);
  require(again.offsets == index.offsets && again.checksums == index.checksums, "changed");
}

void check_journal(const Json& value, std::uint64_t file_bytes) {
  const std::vector<Json> records(value.begin(), value.end());
  const kvs::CaptureProgress progress = kvs::progress_from_journal(records, "input", file_bytes);
  check_ranges(progress.index);
  require(progress.complete_offset + kvs::kCompleteBytes <= file_bytes, "complete outside the file");
  require(progress.index.checksums.size() == progress.committed * progress.index.names.size(), "checksums");
}

/// The size that the input itself claims, so that mutations pass the comparison with the real size.
std::uint64_t claimed_bytes(const Json& value) {
  const Json& object = value.is_array() && !value.empty() ? value.front() : value;
  if (!object.is_object() || !object.contains("file_bytes")) return 4096;
  return object["file_bytes"].is_number_unsigned() ? object["file_bytes"].get<std::uint64_t>() : 4096;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  kvs::fuzz::accept_or_refuse([&] {
    const Json value = kvs::parse_json(text, "input", {.bytes = 1U << 20, .depth = 16, .values = 20000});
    const std::uint64_t file_bytes = claimed_bytes(value);
    if (value.is_array())
      check_journal(value, file_bytes);
    else if (value.is_object() && value.contains("documents") && value["documents"].is_array())
      check_manifest(value, file_bytes);
    else
      check_header(value);
  });
  return 0;
}
