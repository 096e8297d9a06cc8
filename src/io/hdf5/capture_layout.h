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

namespace kvs {

/// How the numbers of a dataset lie in the file, little-endian.
enum class CaptureType { kInt32, kF32, kF16, kBF16 };

/// One dataset of a document.
struct CaptureDataset {
  std::string name;  // below the document's group: "tokens", "nll", "layer/00/k_pre"
  CaptureType type = CaptureType::kF32;
  std::vector<std::uint64_t> shape;  // [tokens], [tokens - 1] or [heads, tokens, head_dim]
  std::uint64_t bytes = 0;
};

/// The datasets of each document in the order in which they are written, which follows from the header alone.
struct CaptureLayout {
  std::vector<CaptureDataset> datasets;
  std::uint64_t document_bytes = 0;
};

/// Where everything lies in one capture file, and the checksums of what is known to be written.
struct CaptureIndex {
  std::uint64_t file_bytes = 0;
  std::string metadata_sha256;           // of all bytes outside the datasets, in file order
  std::vector<std::string> names;        // [dataset]
  std::vector<std::uint64_t> bytes;      // [dataset]
  std::vector<std::uint64_t> offsets;    // [document · dataset]
  std::vector<std::uint32_t> checksums;  // [document · dataset] of the committed documents; empty if not known
};

/// Datasets one capture may hold: keeps its index below 100 MB of memory whatever a file claims.
inline constexpr std::uint64_t kMaxCaptureDatasets = 1U << 20;
inline constexpr std::string_view kCaptureFormat = "kvspectrum-capture";
inline constexpr std::int64_t kCaptureVersion = 1;
inline constexpr std::size_t kMaxTextBytes = 1U << 16;  // of one attribute
/// Bytes of the attribute `complete`, a 64-bit integer.
inline constexpr std::uint64_t kCompleteBytes = 8;

/// @throws Error kInput naming the attribute if the header describes no capture; kUnsupported above
///         kMaxCaptureDatasets. All sizes are checked products.
CaptureLayout layout_of(const CaptureHeader& header, std::string_view where);

std::string document_group(std::uint64_t document);  // "/doc/00000"
std::string layer_group(std::int32_t layer);         // "layer/00"
/// Position in CaptureLayout::datasets; nothing if the capture does not hold these states.
std::optional<std::size_t> dataset_of(const CaptureHeader& header, std::int32_t layer, StateKind kind);

/// "head H, token T" of element `index` of a [head, token, head_dim] dataset.
std::string position_text(const CaptureHeader& header, std::size_t index);
/// Eight hexadecimal digits.
std::string checksum_text(std::uint32_t checksum);

/// The header as an object with one member per attribute, and back.
Json header_to_json(const CaptureHeader& header);
/// @throws Error kInput with the pointer of the first member that cannot be.
CaptureHeader header_from_json(const JsonCursor& object);

using FileRange = std::array<std::uint64_t, 2>;  // [first, last) bytes of a file
/// The part of the file outside all datasets, in file order.
/// @throws Error kInput if a dataset lies outside the file or two overlap.
std::vector<FileRange> metadata_ranges(const CaptureIndex& index, std::string_view where);

}  // namespace kvs
