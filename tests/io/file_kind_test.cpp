// SPDX-License-Identifier: Apache-2.0
#include "io/file_kind.h"

#include <gtest/gtest.h>

#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using namespace std::string_view_literals;

struct Foreign {
  std::string_view first_bytes, name, message;
};

class ForeignText : public ::testing::TestWithParam<Foreign> {};

TEST_P(ForeignText, IsRefusedByNameWithAHint) {
  const auto& [bytes, name, message] = GetParam();
  test::expect_error(ErrorCode::kUnsupported, message, [&] { refuse_foreign_text(bytes, name); });
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ForeignText,
    ::testing::Values(
        Foreign{"PAR1\x15", "t", "t: found a Parquet file, expected UTF-8 text; convert it first"},
        Foreign{"", "t.parquet", "found a Parquet file"}, Foreign{"anything", "t.parquet", "read_parquet('FILE')"},
        Foreign{"ARROW1\0\0"sv, "t", "found an Arrow file"},
        Foreign{"\x1f\x8b\x08", "t.txt", "found a gzip file, expected UTF-8 text; unpack it first: gunzip"},
        Foreign{"PK\x03\x04", "t.docx", "found a zip file"}, Foreign{"BZh91AY&SY", "t", "found a bzip2 file"},
        Foreign{"\xfd"
                "7zXZ\0"sv,
                "t", "found an xz file"},
        Foreign{"\x28\xb5\x2f\xfd", "t", "found a zstd file"},
        Foreign{"%PDF-1.7", "t", "found a PDF document, expected UTF-8 text; convert it first: pdftotext"},
        Foreign{"\xff\xfeh\0"sv, "t", "found UTF-16 text"}, Foreign{"\xfe\xff\0h"sv, "t", "iconv -f UTF-16"},
        Foreign{"\xff\xfe\0\0"sv, "t", "found UTF-32 text"}, Foreign{"\x89HDF\r\n\x1a\n", "t", "found an HDF5 file"},
        Foreign{"GGUF", "t", "that is a model"}, Foreign{"a\0b\0c\0d\0"sv, "t", "found NUL bytes throughout"}));

TEST(ForeignTextKinds, ATarArchiveIsKnownByItsHeader) {
  std::string header = "a.txt";
  header.resize(257);
  EXPECT_NO_THROW(refuse_foreign_text("words and a \0 between"sv, "t"));
  test::expect_error(ErrorCode::kUnsupported, "found a tar archive",
                     [&] { refuse_foreign_text(header + "ustar", "t"); });
}

TEST(ForeignTextKinds, TextThatOnlyResemblesOneIsLeftAlone) {
  for (const std::string_view text :
       {"PAR", "BZh is a prefix", "%PD", "PK is short for Park", "\xef\xbb\xbfwith BOM", "", "the word parquet"})
    EXPECT_NO_THROW(refuse_foreign_text(text, "parquet.txt")) << text;
}

}  // namespace
}  // namespace kvs
