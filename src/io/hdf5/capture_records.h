// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "io/hdf5/capture_layout.h"
#include "io/json.h"

namespace kvs::inline io {

/// The texts next to a capture: OUT.manifest.json of a finished capture and the journal lines of an unfinished one.
/// Both are untrusted input: their contents are checked against the file's size before use.

/// Larger than the largest manifest that manifest_of() can return, at about 30 bytes per dataset.
inline constexpr std::size_t kMaxManifestBytes = 64UL << 20;
/// @param index     complete, with the checksums of all documents
/// @param identity  the run that made the capture; a later run recognises it as finished
Json manifest_of(const CaptureIndex& index, const Json& identity);
/// @param file_bytes  the actual size of the capture
/// @throws Error kInput with the JSON pointer of the fault, or "truncated" with both sizes; kUnsupported if newer.
CaptureIndex index_from_manifest(const Json& manifest, std::string_view where, std::uint64_t file_bytes);

/// The recorded progress of an unfinished capture.
struct CaptureProgress {
  CaptureIndex index;                 // checksums of the committed documents only
  std::uint64_t complete_offset = 0;  // offset of the attribute `complete`
  bool replaces = false;              // started with force: the output may exist until the end
  std::uint64_t committed = 0;        // number of committed documents
  std::string run_id = {};            // random, unique to the run's journal
};

/// The journal's first record, written when the file is laid out. One record per document follows.
Json layout_record(const CaptureProgress& progress);
Json document_record(std::uint64_t document, std::uint64_t tokens, std::span<const std::uint32_t> checksums);
/// @param records  at least the layout record
/// @throws Error kInput with the JSON pointer of the fault.
CaptureProgress progress_from_journal(std::span<const Json> records, std::string_view where, std::uint64_t file_bytes);

/// Returns the kinds of states among dataset names.
StateSet states_of(std::span<const std::string> names);
/// @throws Error kInput if the index does not match this layout and number of documents.
void check_index(const CaptureIndex& index, const CaptureLayout& layout, std::uint64_t documents,
                 std::string_view where);

}  // namespace kvs::inline io
