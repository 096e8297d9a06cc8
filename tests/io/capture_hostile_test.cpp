// SPDX-License-Identifier: Apache-2.0
// Captures that nobody vouches for: made or changed here with libhdf5, without a manifest.
#include <gmock/gmock.h>
#include <hdf5.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>

#include "tests/io/capture_fixture.h"

namespace kvs {
namespace {

namespace fs = std::filesystem;
using namespace test;

class HostileCapture : public testing::Test {
 protected:
  void SetUp() override {
    run_capture(path_, small_header());
    fs::remove(directory_ / "out.h5.manifest.json");
  }
  void edit(const std::function<void(hid_t)>& change) const {
    const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    ASSERT_GE(file, 0);
    change(file);
    ASSERT_GE(H5Fclose(file), 0);
  }
  /// Replaces the dataset `name` by another.
  void replace(const std::string& name, std::vector<hsize_t> shape, hid_t type,
               const std::function<void(hid_t)>& set = {}) const {
    edit([&](hid_t file) {
      H5Ldelete(file, name.c_str(), H5P_DEFAULT);
      const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
      if (set) set(creation);
      const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
      const hid_t dataset = H5Dcreate2(file, name.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
      ASSERT_GE(dataset, 0);
      H5Dclose(dataset), H5Sclose(space), H5Pclose(creation);
    });
  }
  void replace_attribute(const char* name, hid_t type, const void* value, hsize_t size = 1) const {
    edit([&](hid_t file) {
      H5Adelete(file, name);
      if (value == nullptr) return;
      const hid_t space = H5Screate_simple(1, &size, nullptr);
      const hid_t attribute = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
      H5Awrite(attribute, type, value);
      H5Aclose(attribute), H5Sclose(space);
    });
  }
  void expect_refused(ErrorCode code, std::string_view part) const {
    expect_error(code, part, [&] { CaptureReader::open(path_, {}); });
  }

  TemporaryDirectory directory_;
  fs::path path_ = directory_ / "out.h5";
};

TEST_F(HostileCapture, IsReadAsLongAsItIsSound) {
  EXPECT_EQ(CaptureReader::open(path_, {})->tokens(2), tokens_of(small_header(), 2));
}

TEST_F(HostileCapture, NotHdf5AtAll) {
  for (const std::string& bytes : {std::string(), std::string("text"), std::string(5000, '\0')}) {
    directory_.write("out.h5", bytes);
    expect_refused(ErrorCode::kInput, "is no readable HDF5 file");
  }
  fs::remove(path_);
  expect_refused(ErrorCode::kInput, "cannot open");
  fs::create_directory(path_);
  expect_refused(ErrorCode::kInput, "found a directory");
}

TEST_F(HostileCapture, SoftLinkInPlaceOfADataset) {
  edit([](hid_t file) {
    H5Ldelete(file, "/doc/00001/layer/13/v", H5P_DEFAULT);
    H5Lcreate_soft("/doc/00000/layer/13/v", file, "/doc/00001/layer/13/v", H5P_DEFAULT, H5P_DEFAULT);
  });
  expect_refused(ErrorCode::kInput, "/doc/00001/layer/13/v: found a soft link, expected a hard one");
}

TEST_F(HostileCapture, ExternalLinkInPlaceOfAGroup) {
  edit([](hid_t file) {
    H5Ldelete(file, "/doc/00001", H5P_DEFAULT);
    H5Lcreate_external("/etc/passwd", "/doc/00001", file, "/doc/00001", H5P_DEFAULT, H5P_DEFAULT);
  });
  expect_refused(ErrorCode::kInput, "/doc/00001: found an external link, expected a hard one");
}

TEST_F(HostileCapture, MemberThatDoesNotBelong) {
  edit([](hid_t file) {
    H5Lcreate_external("/etc/passwd", "/x", file, "/doc/00002/layer/00/x", H5P_DEFAULT, H5P_DEFAULT);
  });
  expect_refused(ErrorCode::kInput, "/doc/00002/layer/00: found 4 members, expected 3");
}

TEST_F(HostileCapture, GroupLinkedIntoItself) {
  edit([](hid_t file) {
    H5Ldelete(file, "/doc/00002", H5P_DEFAULT);
    H5Lcreate_hard(file, "/doc", file, "/doc/00002", H5P_DEFAULT, H5P_DEFAULT);
  });
  expect_refused(ErrorCode::kInput, "/doc/00002/tokens: missing");
}

TEST_F(HostileCapture, TwoNamesOfOneDataset) {
  edit([](hid_t file) {
    H5Ldelete(file, "/doc/00002/nll", H5P_DEFAULT);
    H5Lcreate_hard(file, "/doc/00001/nll", file, "/doc/00002/nll", H5P_DEFAULT, H5P_DEFAULT);
  });
  expect_refused(ErrorCode::kInput, "two datasets overlap");
}

TEST_F(HostileCapture, DataInAnotherFile) {
  replace("/doc/00000/nll", {16}, H5T_IEEE_F32LE,
          [](hid_t creation) { H5Pset_external(creation, "/etc/passwd", 0, 64); });
  expect_refused(ErrorCode::kInput, "/doc/00000/nll: found external storage");
}

TEST_F(HostileCapture, VirtualDataset) {
  const hsize_t size = 16;
  const hid_t source = H5Screate_simple(1, &size, nullptr);
  replace("/doc/00000/nll", {16}, H5T_IEEE_F32LE,
          [&](hid_t creation) { H5Pset_virtual(creation, source, "/etc/passwd", "/x", source); });
  H5Sclose(source);
  expect_refused(ErrorCode::kInput, "/doc/00000/nll: found a virtual dataset");
}

TEST_F(HostileCapture, CompressedOrUnknownFilter) {
  const hsize_t chunk = 16;
  replace("/doc/00000/nll", {16}, H5T_IEEE_F32LE, [&](hid_t creation) {
    H5Pset_chunk(creation, 1, &chunk);
    H5Pset_deflate(creation, 9);
  });
  expect_refused(ErrorCode::kUnsupported, "/doc/00000/nll: found chunked");
  replace("/doc/00000/nll", {16}, H5T_IEEE_F32LE, [&](hid_t creation) {
    H5Pset_chunk(creation, 1, &chunk);
    H5Pset_filter(creation, 32001, H5Z_FLAG_OPTIONAL, 0, nullptr);
  });
  expect_refused(ErrorCode::kUnsupported, "/doc/00000/nll: found chunked");
}

TEST_F(HostileCapture, ShapeOrTypeOtherThanTheAttributesSay) {
  replace("/doc/00001/layer/00/k_pre", {2, 17, 7}, H5T_IEEE_F32LE);
  expect_refused(ErrorCode::kInput, "/doc/00001/layer/00/k_pre: found shape [2, 17, 7], expected [2, 17, 6]");
  replace("/doc/00001/layer/00/k_pre", {2, 17 * 6}, H5T_IEEE_F32LE);
  expect_refused(ErrorCode::kInput, "found shape [2, 102], expected [2, 17, 6]");
  for (const hid_t type : {H5T_IEEE_F32BE, H5T_STD_I32LE, H5T_IEEE_F64LE}) {
    replace("/doc/00001/layer/00/k_pre", {2, 17, 6}, type);
    expect_refused(ErrorCode::kInput, "/doc/00001/layer/00/k_pre: the stored type");
  }
}

TEST_F(HostileCapture, StorageThatIsNotInTheFile) {
  // Never written and allocated late: the file has no bytes for it.
  replace("/doc/00001/layer/00/k_pre", {2, 17, 6}, H5T_IEEE_F32LE);
  expect_refused(ErrorCode::kInput, "/doc/00001/layer/00/k_pre: found 0 stored bytes, expected 816");
}

TEST_F(HostileCapture, SizesThatNoFileHolds) {
  const std::int64_t huge = std::int64_t{1} << 60;
  replace_attribute("tokens", H5T_NATIVE_INT64, &huge);
  expect_refused(ErrorCode::kInput, "/tokens: found 1152921504606846976");
  const std::int64_t negative = -1;
  replace_attribute("tokens", H5T_NATIVE_INT64, &negative);
  expect_refused(ErrorCode::kInput, "/tokens: found -1");
  const std::int64_t large = std::int64_t{1} << 40;
  replace_attribute("tokens", H5T_NATIVE_INT64, &large);
  expect_refused(ErrorCode::kInput, "/doc/00000/tokens: found shape [17]");
}

TEST_F(HostileCapture, AttributeOfMoreMemoryThanTheFileMayTake) {
  std::string bytes = read_all(path_);
  const std::size_t name = bytes.find(std::string("layers\0", 7)),
                    extent = bytes.find(std::string("\2\0\0\0\0\0\0\0", 8), name);
  ASSERT_LT(extent, name + 100);
  bytes[extent + 3] = 4;  // 2^26 + 2 layers of 4 bytes
  directory_.write("out.h5", bytes);
  expect_refused(ErrorCode::kInput, "");
}

TEST_F(HostileCapture, AttributesMissingOrOfAnotherKind) {
  const std::int64_t number = 3;
  replace_attribute("architecture", H5T_NATIVE_INT64, &number);
  expect_refused(ErrorCode::kInput, "/@architecture: expected one string");
  replace_attribute("architecture", 0, nullptr);
  expect_refused(ErrorCode::kInput, "/@architecture: the attribute is missing");
}

TEST_F(HostileCapture, VersionsAndFormats) {
  const std::int64_t newer = 3, none = 0;
  replace_attribute("version", H5T_NATIVE_INT64, &newer);
  expect_refused(ErrorCode::kUnsupported, "/@version: found 3, expected 1");
  replace_attribute("version", H5T_NATIVE_INT64, &none);
  expect_refused(ErrorCode::kInput, "/@version: found 0, expected 1");
  const hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, 5);
  replace_attribute("format", text, "other");
  H5Tclose(text);
  expect_refused(ErrorCode::kInput, "/@format: found \"other\"");
}

TEST_F(HostileCapture, LayersOutOfOrder) {
  const std::array<std::int32_t, 2> layers{13, 0};
  replace_attribute("layers", H5T_NATIVE_INT32, layers.data(), layers.size());
  expect_refused(ErrorCode::kInput, "layers: found 0, expected ascending");
}

/// Flips bits, writes numbers at the ends of their ranges, copies a piece over another, or cuts.
void damage(std::string& bytes, std::size_t metadata, std::mt19937& random) {
  constexpr std::array<std::uint64_t, 6> kNumbers{0, 1, 0xff, 0x7fffffff, 0xffffffff, ~0ULL};
  for (std::size_t change = 0; change < 1 + random() % 4; ++change) {
    const std::size_t at = random() % (metadata - 64), kind = random() % 8;
    if (kind < 4) {
      bytes[at] ^= static_cast<char>(1U << (random() % 8));
    } else if (kind < 6) {
      std::memcpy(&bytes[at], &kNumbers[random() % kNumbers.size()], std::size_t{1} << (random() % 4));
    } else if (kind < 7) {
      std::memmove(&bytes[at], &bytes[random() % (metadata - 64)], 1 + random() % 64);
    } else if (random() % 8 == 0) {
      bytes.resize(bytes.size() - random() % 4096);
    }
  }
}

double processor_seconds_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST_F(HostileCapture, RandomDamageIsAnErrorOrHarmlessButNeverADeathNorAHang) {
  // Metadata lie before the first data, which start at the first whole page after a block of 64 KiB at most.
  const std::string sound = read_all(path_);
  std::mt19937 random(11);
  const char* const wanted = std::getenv("KVS_DAMAGED_CAPTURES");
  const int runs = wanted == nullptr ? 300 : std::atoi(wanted);
  int refused = 0;
  double longest = 0;
  for (int run = 0; run < runs; ++run) {
    std::string damaged = sound;
    damage(damaged, 12288, random);
    directory_.write("out.h5", damaged);
    const double before = processor_seconds_of_children();
    try {
      CaptureReader::open(path_, {});
    } catch (const Error& error) {
      ++refused;
      EXPECT_TRUE(error.code() == ErrorCode::kInput || error.code() == ErrorCode::kUnsupported ||
                  error.code() == ErrorCode::kConflict)
          << "run " << run << ": " << error.what();
    }
    longest = std::max(longest, processor_seconds_of_children() - before);
  }
  EXPECT_GT(refused, runs / 10);
  EXPECT_LT(longest, 18.0);
  RecordProperty("refused", refused);
}

}  // namespace
}  // namespace kvs
