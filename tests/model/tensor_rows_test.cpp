// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "model/model_tensors.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

/// One tensor in memory, which records the released ranges.
class MemoryArchive final : public TensorArchive {
 public:
  MemoryArchive(const ElementType& type, std::vector<std::uint64_t> shape) : type_(&type) {
    StoredTensor& tensor = tensors_.emplace_back();
    tensor.name = "w";
    tensor.type = type_;
    tensor.type_name = type.name;
    tensor.shape = std::move(shape);
    bytes_.resize(tensor.rows() * tensor.columns() / type.block_values * type.block_bytes);
    tensor.bytes = bytes_;
  }

  std::vector<std::byte>& bytes() { return bytes_; }
  const std::vector<std::pair<std::size_t, std::size_t>>& released() const { return released_; }  // offset, size
  TensorRows rows() const {
    const std::uint64_t count = tensors_.front().rows();
    return {*this, tensors_.front(), {}, {.first = 0, .rows = count, .run = count, .stride = count}};
  }

  std::span<const StoredTensor> tensors() const noexcept override { return tensors_; }
  const std::filesystem::path& file_of(const StoredTensor&) const noexcept override { return path_; }
  void check_unchanged() const override {}
  void release(std::span<const std::byte> bytes) const noexcept override {
    released_.emplace_back(bytes.data() - bytes_.data(), bytes.size());
  }

 private:
  const ElementType* type_;
  std::vector<std::byte> bytes_;
  std::vector<StoredTensor> tensors_;
  std::filesystem::path path_ = "m.gguf";
  mutable std::vector<std::pair<std::size_t, std::size_t>> released_;
};

struct Scale {
  std::uint32_t type;  // ggml.h's number
  std::size_t offset;  // of an f16 scale in its block
};

class BlockScales : public testing::TestWithParam<Scale> {};

TEST_P(BlockScales, ThatAreNotFiniteAreFoundWithTensorPlaceAndCount) {
  const ElementType& type = *element_type_of_ggml(GetParam().type);
  const std::size_t values = type.block_values, columns = 2 * values;
  MemoryArchive archive(type, {3, columns});
  std::vector<float> out(3 * columns);
  EXPECT_NO_THROW(archive.rows().read(0, 3, out));  // all zero
  // Row 1, block 1: an infinite scale or minimum times zeros is NaN, and so is every sum with it.
  const std::uint16_t infinity = 0x7c00;
  std::memcpy(&archive.bytes()[3 * type.block_bytes + GetParam().offset], &infinity, sizeof infinity);
  const std::string message = "m.gguf: tensor w: found " + std::to_string(values) +
                              " values that are NaN, infinite or beyond f32, the first at flat index " +
                              std::to_string(columns + values);
  test::expect_error(ErrorCode::kData, message, [&] { archive.rows().read(0, 3, out); });
}

// The scales of Q8_0, Q4_1 (and its minimum), Q2_K (both), Q3_K, Q4_K (both), Q6_K, IQ4_XS.
INSTANTIATE_TEST_SUITE_P(Types, BlockScales,
                         testing::Values(Scale{8, 0}, Scale{3, 0}, Scale{3, 2}, Scale{10, 80}, Scale{10, 82},
                                         Scale{11, 108}, Scale{12, 0}, Scale{12, 2}, Scale{14, 208}, Scale{23, 0}));

TEST(TensorRows, LetGoOfTheBytesOfTheRowsThatWereRead) {
  MemoryArchive archive(*element_type_of_ggml(2), {4, 64});  // Q4_0: two blocks of 18 bytes a row
  std::vector<float> out(2 * 64);
  archive.rows().read(1, 2, out);
  ASSERT_EQ(archive.released().size(), 1U);
  EXPECT_EQ(archive.released().front(), (std::pair<std::size_t, std::size_t>(36, 72)));
}

/// A matrix whose scales are the last 8 bytes of its archive.
class ScaledRows final : public StoredMatrix {
 public:
  ScaledRows(const StoredTensor& values, const StoredTensor& scales, bool by_rows)
      : StoredMatrix({3, 2}, {&values, &scales}), by_rows_(by_rows) {}
  bool is_by_rows() const noexcept override { return by_rows_; }
  void read(std::size_t, std::size_t, std::span<float> out) const override { std::ranges::fill(out, 1.0F); }

 private:
  bool by_rows_;
};

TEST(TensorRows, LetGoOfScalesWithTheLastRow) {
  using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;
  for (const bool by_rows : {true, false}) {
    MemoryArchive archive(*element_type_of_ggml(0), {4, 2});
    StoredTensor values = archive.tensors().front(), scales = values;
    values.bytes = values.bytes.first(24);
    scales.bytes = scales.bytes.last(8);
    const ScaledRows matrix(values, scales, by_rows);
    const TensorRows rows(archive, values, {}, {.first = 0, .rows = 3, .run = 3, .stride = 3}, &matrix);
    std::vector<float> out(4);
    rows.read(0, 2, out);
    EXPECT_EQ(archive.released(), by_rows ? Ranges({{0, 16}}) : Ranges());
    rows.read(2, 1, {out.data(), 2});
    EXPECT_EQ(archive.released(), by_rows ? Ranges({{0, 16}, {24, 8}, {16, 8}}) : Ranges({{24, 8}, {0, 24}}));
  }
}

TEST(TensorRows, ReadColumnsOfTransposedMatrices) {
  MemoryArchive archive(*element_type_of_ggml(0), {2, 3, 40});  // F32: two matrices of 3 columns, 40 rows in two parts
  for (std::uint32_t n = 0; n < 240; ++n) {
    const auto value = static_cast<float>(n);
    std::memcpy(&archive.bytes()[4UL * n], &value, sizeof value);
  }
  const TensorRows part(archive, archive.tensors().front(), {},
                        {.first = 22, .rows = 18, .run = 18, .stride = 18, .base = 3, .depth = 3});
  ASSERT_EQ(part.columns(), 3U);
  std::vector<float> out(17 * 3);  // more rows than one task reads
  part.read(1, 17, out);
  for (std::size_t row = 0; row < 17; ++row)
    for (std::size_t column = 0; column < 3; ++column)
      EXPECT_EQ(out[row * 3 + column], static_cast<float>((3 + column) * 40 + 23 + row));
  EXPECT_EQ(archive.released(), (std::vector<std::pair<std::size_t, std::size_t>>{{480, 480}}));
}

}  // namespace
}  // namespace kvs
