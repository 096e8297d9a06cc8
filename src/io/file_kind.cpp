// SPDX-License-Identifier: Apache-2.0
#include "io/file_kind.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/error.h"
#include "io/text_kind.h"

namespace kvs::inline io {
namespace {

struct Kind {
  std::string_view magic, name, hint;
  std::size_t offset = 0;  // of the magic number
};

constexpr std::string_view kToJsonl =
    "convert it first, e.g. python3 -c \"import pandas; pandas.read_parquet('FILE')[['text']]"
    ".to_json('FILE.jsonl', orient='records', lines=True)\"";
using namespace std::string_view_literals;  // magic numbers contain NULs

constexpr std::array kKinds{
    Kind{"PAR1"sv, "a Parquet file", kToJsonl},
    Kind{"ARROW1"sv, "an Arrow file", "convert it first to JSONL with a `text` field"},
    Kind{"\x1f\x8b"sv, "a gzip file", "unpack it first: gunzip -k FILE"},
    Kind{"PK\x03\x04"sv, "a zip file (or an office document)", "unpack it first, or export it as text"},
    Kind{"BZh91AY&SY"sv, "a bzip2 file", "unpack it first: bunzip2 -k FILE"},
    Kind{"\xfd"
         "7zXZ\0"sv,
         "an xz file", "unpack it first: unxz -k FILE"},
    Kind{"\x28\xb5\x2f\xfd"sv, "a zstd file", "unpack it first: unzstd FILE"},
    Kind{"%PDF-"sv, "a PDF document", "convert it first: pdftotext FILE"},
    Kind{"\xff\xfe\0\0"sv, "UTF-32 text", "convert it first: iconv -f UTF-32 -t UTF-8"},
    Kind{"\0\0\xfe\xff"sv, "UTF-32 text", "convert it first: iconv -f UTF-32 -t UTF-8"},
    Kind{"\xff\xfe"sv, "UTF-16 text", "convert it first: iconv -f UTF-16 -t UTF-8"},
    Kind{"\xfe\xff"sv, "UTF-16 text", "convert it first: iconv -f UTF-16 -t UTF-8"},
    Kind{"\x89HDF\r\n\x1a\n"sv, "an HDF5 file", "that is a capture"},
    Kind{"GGUF"sv, "a GGUF model", "that is a model"},
    Kind{"ustar"sv, "a tar archive", "unpack it first: tar -xf FILE", 257},
};
constexpr Kind kNuls{"", "NUL bytes throughout, as in UTF-16 text",
                     "convert it first, e.g. iconv -f UTF-16LE -t UTF-8"};

/// Returns true if at least a quarter of the bytes are NUL. A text may contain a single NUL.
bool is_full_of_nuls(std::string_view bytes) {
  constexpr std::size_t kLeast = 8;
  return bytes.size() >= kLeast && 4 * static_cast<std::size_t>(std::ranges::count(bytes, '\0')) >= bytes.size();
}

}  // namespace

void refuse_lfs_pointer(std::string_view first_bytes, std::string_view name) {
  if (first_bytes.starts_with("version https://git-lfs."))
    throw Error(ErrorCode::kInput, name, "found a Git LFS pointer, expected the file itself (git lfs pull fetches it)");
}

void refuse_foreign_text(std::string_view first_bytes, std::string_view name) {
  refuse_lfs_pointer(first_bytes, name);
  const Kind* found = nullptr;
  for (const Kind& kind : kKinds) {
    if (first_bytes.size() < kind.offset || !first_bytes.substr(kind.offset).starts_with(kind.magic)) continue;
    found = &kind;
    break;
  }
  if (found == nullptr && has_ending(name, ".parquet")) found = &kKinds.front();
  if (found == nullptr && is_full_of_nuls(first_bytes)) found = &kNuls;
  if (found == nullptr) return;
  throw Error(ErrorCode::kUnsupported, name,
              "found " + std::string(found->name) + ", expected UTF-8 text; " + std::string(found->hint));
}

}  // namespace kvs::inline io
