// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/array_file.h"

#include <gmock/gmock.h>
#include <hdf5.h>

#include "tests/io/temporary_directory.h"

namespace kvs::test {
namespace {

constexpr std::array kPower{1.0F, 2.5F, -3.0F, 4.0F, 5.0F, 1e-38F};
constexpr std::array kExact{1.0 / 3.0, 2e300};
constexpr std::array kIndex{7, -1, 2147483647};

std::vector<NamedArray> arrays() {
  return {{"/power/k_pre", {1, 2, 3}, std::span<const float>(kPower), {{"units", "a^2"}, {"axes", "layer, head, bin"}}},
          {"/power/exact", {2}, std::span<const double>(kExact), {}},
          {"/index", {3, 1, 1, 1}, std::span<const std::int32_t>(kIndex), {}}};
}

TEST(ArrayFile, ReadsBackWithPlainHdf5) {
  const TemporaryDirectory directory;
  directory.write("a.h5", array_file_bytes(arrays(), {{"format", "kvspectrum-spectrum"}}));
  const hid_t file = H5Fopen((directory / "a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  const auto read = [&](const char* name, hid_t stored, hid_t memory, auto values, const std::vector<hsize_t>& shape) {
    const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    EXPECT_GT(H5Tequal(type, stored), 0) << name;
    std::vector<hsize_t> extents(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
    H5Sget_simple_extent_dims(space, extents.data(), nullptr);
    EXPECT_EQ(extents, shape) << name;
    EXPECT_GE(H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << name;
    H5Sclose(space), H5Tclose(type), H5Dclose(dataset);
    return values;
  };
  EXPECT_EQ(read("/power/k_pre", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, std::array<float, 6>{}, {1, 2, 3}), kPower);
  EXPECT_EQ(read("/power/exact", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, std::array<double, 2>{}, {2}), kExact);
  EXPECT_EQ(read("/index", H5T_STD_I32LE, H5T_NATIVE_INT32, std::array<int, 3>{}, {3, 1, 1, 1}), kIndex);
  const hid_t attribute = H5Aopen_by_name(file, "/power/k_pre", "units", H5P_DEFAULT, H5P_DEFAULT);
  const hid_t type = H5Aget_type(attribute);
  char* text = nullptr;
  ASSERT_GE(H5Aread(attribute, type, &text), 0);
  EXPECT_STREQ(text, "a^2");
  H5free_memory(text);
  H5Tclose(type), H5Aclose(attribute), H5Fclose(file);
}

TEST(ArrayFile, SameArraysGiveSameBytes) { EXPECT_EQ(array_file_bytes(arrays(), {}), array_file_bytes(arrays(), {})); }

TEST(ArrayFile, RefusesValuesThatDoNotFillTheirShape) {
  std::vector<NamedArray> wrong = arrays();
  wrong[0].shape = {1, 2, 2};
  expect_error(ErrorCode::kInternal, "/power/k_pre", [&] { (void)array_file_bytes(wrong, {}); });
  wrong[0].shape = {1ULL << 63, 2, 3};
  expect_error(ErrorCode::kInternal, "/power/k_pre", [&] { (void)array_file_bytes(wrong, {}); });
  wrong = arrays();
  wrong[1].path = wrong[0].path;
  expect_error(ErrorCode::kInternal, "name already exists", [&] { (void)array_file_bytes(wrong, {}); });
}

}  // namespace
}  // namespace kvs::test
