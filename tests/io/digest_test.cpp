// SPDX-License-Identifier: Apache-2.0
#include "io/digest.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// FIPS 180-4 examples (NIST "SHA256.pdf"): "abc", and the empty message.
TEST(Sha256, GivesTheStandardsExamples) {
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, OfPiecesIsThatOfTheWhole) {
  Sha256 digest;
  digest.update("a");
  digest.update("");
  digest.update("bc");
  EXPECT_EQ(digest.finish(), sha256_of("abc"));
}

TEST(Sha256, OfAFileLargerThanOneReadIsThatOfItsBytes) {
  const test::TemporaryDirectory directory;
  const std::string text((1U << 20) + 17, 'k');
  EXPECT_EQ(sha256_of_file(directory.write("f", text)), sha256_of(text));
}

TEST(Sha256, RefusesWhatIsNoFile) {
  const test::TemporaryDirectory directory;
  test::expect_error(ErrorCode::kInput, "missing", [&] { sha256_of_file(directory / "missing"); });
  test::expect_error(ErrorCode::kInput, "directory", [&] { sha256_of_file(directory.path()); });
}

// RFC 3720 appendix B.4 (32 zeros, 32 ones, 0..31), and the check value of the CRC catalogue for "123456789".
TEST(Crc32c, GivesThePublishedValues) {
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending += c;
  for (const auto crc : {&crc32c, &crc32c_by_table}) {
    EXPECT_EQ(crc(bytes_of("123456789"), 0), 0xE3069283U);
    EXPECT_EQ(crc(bytes_of(std::string(32, '\0')), 0), 0x8A9136AAU);
    EXPECT_EQ(crc(bytes_of(std::string(32, '\xff')), 0), 0x62A8AB43U);
    EXPECT_EQ(crc(bytes_of(ascending), 0), 0x46DD794EU);
    EXPECT_EQ(crc({}, 0), 0U);
  }
}

TEST(Crc32c, ContinuesFromAnyCutAndAgreesWithTheTable) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(1000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const std::span<const std::byte> all(bytes);
  const std::uint32_t whole = crc32c_by_table(all);
  for (std::size_t cut = 0; cut <= 40; ++cut)
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), whole) << "cut at " << cut;
}

}  // namespace
}  // namespace kvs
