// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/capture_records.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace kvs::inline io {
namespace {

constexpr std::string_view kManifestFormat = "kvspectrum-capture-manifest",
                           kJournalFormat = "kvspectrum-capture-layout";

template <class Value>
Json slice_of(const std::vector<Value>& values, std::size_t row, std::size_t width) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * width);
  return std::vector<Value>(first, first + static_cast<std::ptrdiff_t>(width));
}

void check_format(const JsonCursor& object, std::string_view where, std::string_view format) {
  if (object.at("format").string() != format) object.at("format").fail("\"" + std::string(format) + "\"");
  if (object.at("version").unsigned_integer() > static_cast<std::uint64_t>(kRecordVersion))
    throw Error(ErrorCode::kUnsupported, std::string(where) + ": /version",
                "found a newer version, expected at most " + std::to_string(kRecordVersion));
  if (object.at("version").unsigned_integer() == 0) object.at("version").fail("version 1");
}

/// Reads the members shared by manifest and layout record, except the offsets.
CaptureIndex common_part(const JsonCursor& object, std::uint64_t file_bytes) {
  CaptureIndex index;
  index.file_bytes = object.at("file_bytes").unsigned_integer();
  if (index.file_bytes != file_bytes)
    object.at("file_bytes")
        .fail("the size of the capture, which has " + std::to_string(file_bytes) +
              " bytes: it was truncated or replaced");
  index.metadata_sha256 = object.at("metadata_sha256").string();
  const bool hexadecimal = index.metadata_sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (index.metadata_sha256.size() != 64 || !hexadecimal) object.at("metadata_sha256").fail("64 hexadecimal digits");
  const JsonCursor names = object.at("names"), bytes = object.at("bytes");
  const std::size_t datasets = names.array_size();
  if (datasets == 0 || datasets > kMaxCaptureDatasets) names.fail("1 to 1048576 names");
  if (bytes.array_size() != datasets) bytes.fail(std::to_string(datasets) + " sizes");
  for (std::size_t i = 0; i < datasets; ++i) {
    index.names.push_back(names.at(i).string());
    index.bytes.push_back(bytes.at(i).unsigned_integer(file_bytes));
    if (index.bytes.back() == 0) bytes.at(i).fail("at least one byte");
  }
  return index;
}

void append_offsets(const JsonCursor& offsets, CaptureIndex& index) {
  if (offsets.array_size() != index.names.size()) offsets.fail(std::to_string(index.names.size()) + " offsets");
  for (std::size_t i = 0; i < index.names.size(); ++i)
    index.offsets.push_back(offsets.at(i).unsigned_integer(index.file_bytes));
}

void append_checksums(const JsonCursor& checksums, CaptureIndex& index) {
  if (checksums.array_size() != index.names.size()) checksums.fail(std::to_string(index.names.size()) + " checksums");
  for (std::size_t i = 0; i < index.names.size(); ++i)
    index.checksums.push_back(
        static_cast<std::uint32_t>(checksums.at(i).unsigned_integer(std::numeric_limits<std::uint32_t>::max())));
}

/// Returns the number of rows of a [document][dataset] table. @throws Error kInput if that number is impossible.
std::size_t table_rows(const JsonCursor& table, const CaptureIndex& index) {
  const std::size_t rows = table.array_size();
  if (rows == 0 || rows > kMaxCaptureDatasets / index.names.size())
    table.fail("1 to " + std::to_string(kMaxCaptureDatasets / index.names.size()) + " documents");
  return rows;
}

bool lies_between_datasets(const CaptureIndex& index, std::uint64_t offset, std::string_view where) {
  return std::ranges::any_of(metadata_ranges(index, where), [&](const FileRange& range) {
    return offset >= range[0] && range[1] - range[0] >= kCompleteBytes && offset <= range[1] - kCompleteBytes;
  });
}

}  // namespace

Json manifest_of(const CaptureIndex& index, const Json& identity) {
  Json documents = Json::array();
  for (std::size_t row = 0; row < index.offsets.size() / index.names.size(); ++row)
    documents.push_back(Json{{"offsets", slice_of(index.offsets, row, index.names.size())},
                             {"crc32c", slice_of(index.checksums, row, index.names.size())}});
  return Json{{"format", kManifestFormat},      {"version", kRecordVersion},
              {"file_bytes", index.file_bytes}, {"metadata_sha256", index.metadata_sha256},
              {"identity", identity},           {"names", index.names},
              {"bytes", index.bytes},           {"documents", std::move(documents)}};
}

CaptureIndex index_from_manifest(const Json& text, std::string_view where, std::uint64_t file_bytes) {
  const JsonCursor manifest(text, std::string(where));
  check_format(manifest, where, kManifestFormat);
  CaptureIndex index = common_part(manifest, file_bytes);
  const JsonCursor documents = manifest.at("documents");
  const std::size_t rows = table_rows(documents, index);
  for (std::size_t row = 0; row < rows; ++row) {
    append_offsets(documents.at(row).at("offsets"), index);
    append_checksums(documents.at(row).at("crc32c"), index);
  }
  return index;
}

Json layout_record(const CaptureProgress& progress) {
  const CaptureIndex& index = progress.index;
  Json documents = Json::array();
  for (std::size_t row = 0; row < index.offsets.size() / index.names.size(); ++row)
    documents.push_back(slice_of(index.offsets, row, index.names.size()));
  return Json{{"format", kJournalFormat},
              {"version", kRecordVersion},
              {"file_bytes", index.file_bytes},
              {"metadata_sha256", index.metadata_sha256},
              {"complete_offset", progress.complete_offset},
              {"replaces", progress.replaces},
              {"run_id", progress.run_id},
              {"names", index.names},
              {"bytes", index.bytes},
              {"offsets", std::move(documents)}};
}

Json document_record(std::uint64_t document, std::uint64_t tokens, std::span<const std::uint32_t> checksums) {
  return Json{{"document", document},
              {"tokens", tokens},
              {"crc32c", std::vector<std::uint32_t>(checksums.begin(), checksums.end())}};
}

CaptureProgress progress_from_journal(std::span<const Json> records, std::string_view where, std::uint64_t file_bytes) {
  if (records.empty()) throw Error(ErrorCode::kInput, where, "the line that describes the file is missing");
  const JsonCursor layout(records[0], std::string(where) + ": line 2");
  check_format(layout, where, kJournalFormat);
  CaptureProgress progress;
  progress.index = common_part(layout, file_bytes);
  const JsonCursor offsets = layout.at("offsets");
  const std::size_t rows = table_rows(offsets, progress.index);
  for (std::size_t row = 0; row < rows; ++row) append_offsets(offsets.at(row), progress.index);
  progress.complete_offset = layout.at("complete_offset").unsigned_integer(file_bytes);
  if (!lies_between_datasets(progress.index, progress.complete_offset, where))
    layout.at("complete_offset").fail("an offset outside the datasets");
  progress.replaces = layout.at("replaces").boolean();
  progress.run_id = layout.at("run_id").string();
  progress.committed = records.size() - 1;
  if (progress.committed > rows)
    throw Error(ErrorCode::kInput, where,
                "found " + std::to_string(progress.committed) + " documents, expected at most " + std::to_string(rows));
  for (std::size_t document = 0; document < progress.committed; ++document) {
    const JsonCursor record(records[document + 1], std::string(where) + ": line " + std::to_string(document + 3));
    if (record.at("document").unsigned_integer() != document)
      record.at("document").fail("document " + std::to_string(document));
    append_checksums(record.at("crc32c"), progress.index);
  }
  return progress;
}

StateSet states_of(std::span<const std::string> names) {
  StateSet states;
  for (const StateKind kind : kStateKinds)
    if (std::ranges::any_of(names, [&](const std::string& name) {
          return name.starts_with("layer/") && name.ends_with("/" + std::string(name_of(kind)));
        }))
      states.insert(kind);
  return states;
}

void check_index(const CaptureIndex& index, const CaptureLayout& layout, std::uint64_t documents,
                 std::string_view where) {
  const auto fail = [&](const std::string& problem) { throw Error(ErrorCode::kInput, where, problem); };
  if (index.names.size() != layout.datasets.size())
    fail("found " + std::to_string(index.names.size()) + " datasets per document, expected " +
         std::to_string(layout.datasets.size()));
  for (std::size_t i = 0; i < index.names.size(); ++i) {
    const CaptureDataset& expected = layout.datasets[i];
    if (index.names[i] != expected.name) fail("found dataset " + index.names[i] + ", expected " + expected.name);
    if (index.bytes[i] != expected.bytes)
      fail(expected.name + ": found " + std::to_string(index.bytes[i]) + " bytes, expected " +
           std::to_string(expected.bytes));
  }
  if (index.offsets.size() != documents * layout.datasets.size())
    fail("found " + std::to_string(index.offsets.size() / index.names.size()) + " documents, expected " +
         std::to_string(documents));
}

}  // namespace kvs::inline io
