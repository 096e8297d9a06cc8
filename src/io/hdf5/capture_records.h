#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "io/hdf5/capture_layout.h"
#include "io/json.h"

namespace kvs {

/// The texts beside a capture: OUT.manifest.json of a finished one and the journal lines of an unfinished one.
/// Both are input when they are read: nothing in them is believed before it was checked against the file's size.

/// Above the size of the largest manifest that manifest_of() gives, about 30 bytes a dataset.
inline constexpr std::size_t kMaxManifestBytes = 64UL << 20;
/// @param index     complete, checksums of all documents included
/// @param identity  the run that made it, so that a later one can see that it is done already
Json manifest_of(const CaptureIndex& index, const Json& identity);
/// @param file_bytes  the size that the capture really has
/// @throws Error kInput with the JSON pointer of what is wrong, or "truncated" with both sizes; kUnsupported if newer.
CaptureIndex index_from_manifest(const Json& manifest, std::string_view where, std::uint64_t file_bytes);

/// What an unfinished capture knows of itself.
struct CaptureProgress {
  CaptureIndex index;                 // checksums of the committed documents only
  std::uint64_t complete_offset = 0;  // where the attribute `complete` lies
  bool replaces = false;              // begun with force: the output may exist until the end
  std::uint64_t committed = 0;        // documents
  std::string run_id = {};            // random: no other run's journal has it
};

/// The journal's first record, written when the file is laid out; then one record per document.
Json layout_record(const CaptureProgress& progress);
Json document_record(std::uint64_t document, std::uint64_t tokens, std::span<const std::uint32_t> checksums);
/// @param records  at least the layout record
/// @throws Error kInput with the JSON pointer of what is wrong.
CaptureProgress progress_from_journal(std::span<const Json> records, std::string_view where, std::uint64_t file_bytes);

/// The kinds of states among dataset names.
StateSet states_of(std::span<const std::string> names);
/// @throws Error kInput if the index is not of a capture with this layout and so many documents.
void check_index(const CaptureIndex& index, const CaptureLayout& layout, std::uint64_t documents,
                 std::string_view where);

}  // namespace kvs
