// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/hdf5/capture_file.h"
#include "io/json.h"

namespace kvs::inline io {

/// Number format of a dataset in the file, little-endian.
enum class CaptureType { kInt32, kF32, kF16, kBF16 };

/// One dataset of a document.
struct CaptureDataset {
  std::string name;  // below the document's group: "tokens", "nll", "layer/00/k_pre"
  CaptureType type = CaptureType::kF32;
  std::vector<std::uint64_t> shape;  // [tokens], [tokens - 1] or [heads, tokens, head_dim]
  std::uint64_t bytes = 0;
};

/// The datasets of each document in writing order. They follow from the header alone.
struct CaptureLayout {
  std::vector<CaptureDataset> datasets;
  std::uint64_t document_bytes = 0;
};

/// The positions of everything in one capture file, and the checksums of the data known to be written.
struct CaptureIndex {
  std::uint64_t file_bytes = 0;
  std::string metadata_sha256;           // covers all bytes outside the datasets, in file order
  std::vector<std::string> names;        // [dataset]
  std::vector<std::uint64_t> bytes;      // [dataset]
  std::vector<std::uint64_t> offsets;    // [document · dataset]
  std::vector<std::uint32_t> checksums;  // [document · dataset] of the committed documents; empty if unknown
};

/// Maximum number of datasets in a capture. It keeps the index below 100 MB of memory whatever a file claims.
inline constexpr std::uint64_t kMaxCaptureDatasets = 1U << 20;
inline constexpr std::string_view kCaptureFormat = "kvspectrum-capture";
/// The version of captures whose sizes differ between layers. All others have version 1.
inline constexpr std::int64_t kCaptureVersion = 2;
/// The version of manifests and journals.
inline constexpr std::int64_t kRecordVersion = 1;
inline constexpr std::size_t kMaxTextBytes = 1U << 16;  // limit of one attribute
/// Size of the attribute `complete`, a 64-bit integer.
inline constexpr std::uint64_t kCompleteBytes = 8;

/// @throws Error kInput naming the attribute if the header cannot describe a capture; kUnsupported above
///         kMaxCaptureDatasets. All sizes are checked products.
CaptureLayout layout_of(const CaptureHeader& header, std::string_view where);

std::string document_group(std::uint64_t document);  // "/doc/00000"
std::string layer_group(std::int32_t layer);         // "layer/00"
/// Returns the index in CaptureLayout::datasets, or nullopt if the capture does not hold these states.
std::optional<std::size_t> dataset_of(const CaptureHeader& header, std::int32_t layer, StateKind kind);

/// Returns the version of a capture with this header.
std::int64_t capture_version(const CaptureHeader& header) noexcept;
/// Returns "head H, token T" for element `index` of a [head, token, head_dim] dataset of `layer`.
std::string position_text(const CaptureHeader& header, std::size_t layer, std::size_t index);
/// Returns eight hexadecimal digits.
std::string checksum_text(std::uint32_t checksum);

/// Converts the header to an object with one member per attribute.
Json header_to_json(const CaptureHeader& header);
/// Converts the object back. @throws Error kInput with the pointer of the first invalid member.
CaptureHeader header_from_json(const JsonCursor& object);

using FileRange = std::array<std::uint64_t, 2>;  // [first, last) bytes of a file
/// Returns the parts of the file outside all datasets, in file order.
/// @throws Error kInput if a dataset lies outside the file or two overlap.
std::vector<FileRange> metadata_ranges(const CaptureIndex& index, std::string_view where);

}  // namespace kvs::inline io
