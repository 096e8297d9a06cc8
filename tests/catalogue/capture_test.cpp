// SPDX-License-Identifier: Apache-2.0
// Captures as inputs: N86 to N100.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <hdf5.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/catalogue/catalogue.h"
#include "tests/io/capture_fixture.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kCapture = "c.h5";
constexpr const char* kNll = "/doc/00000/nll";
constexpr const char* kStates = "/doc/00001/layer/02/k_pre";

/// Captures two documents into c.h5 of `folder`.
void write_capture(const TemporaryFolder& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"capture",   "--model", folder / "model", "--tokens-file",   folder / "tokens.jsonl",
                                 "--window",  "32",      "--out",          folder / kCapture, "--quiet",
                                 "--threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  ASSERT_EQ(run("kvspectrum", words).status, 0);
}
std::vector<std::string> spectrum_words(const TemporaryFolder& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"spectrum", "--capture", folder / kCapture, "--out-dir", folder / "out/s"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Changes c.h5 with the library and removes its manifest, so that only the file itself can show the change.
void edit_capture(const TemporaryFolder& folder, const std::function<void(hid_t)>& change) {
  fs::remove(folder / (std::string(kCapture) + ".manifest.json"));
  const hid_t file = H5Fopen((folder / kCapture).c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  change(file);
  ASSERT_GE(H5Fclose(file), 0);
}
/// Replaces the dataset `name` by another.
void replace_dataset(const TemporaryFolder& folder, const char* name, std::vector<hsize_t> shape, hid_t type,
                     const std::function<void(hid_t)>& set = {}) {
  edit_capture(folder, [&](hid_t file) {
    H5Ldelete(file, name, H5P_DEFAULT);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    if (set) set(creation);
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    ASSERT_GE(dataset, 0);
    H5Dclose(dataset), H5Sclose(space), H5Pclose(creation);
  });
}
/// Sets an attribute of the root, or removes it without a value.
void replace_root_attribute(const TemporaryFolder& folder, const char* name, const std::int64_t* value) {
  edit_capture(folder, [&](hid_t file) {
    H5Adelete(file, name);
    if (value == nullptr) return;
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(file, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_INT64, value);
    H5Aclose(attribute), H5Sclose(space);
  });
}
TEST_F(Catalogue, N86_NoHdf5) {
  for (const std::string& bytes : {std::string(), std::string("text"), std::string(5000, '\0')}) {
    write(kCapture, bytes);
    expect_refused("kvspectrum", spectrum_words(folder_), 3, {kCapture, "no readable HDF5 file"});
  }
  expect_refused("kvspectrum", {"spectrum", "--capture", folder_ / "absent.h5", "--out-dir", folder_ / "out/s"}, 3,
                 {"absent.h5"});
}

TEST_F(Catalogue, N87_Truncated) {
  write_capture(folder_);
  const auto size = fs::file_size(folder_ / kCapture);
  fs::resize_file(folder_ / kCapture, size - 1);
  expect_refused("kvspectrum", spectrum_words(folder_), 3,
                 {kCapture, std::to_string(size), std::to_string(size - 1), "truncated"});
  fs::remove(folder_ / "c.h5.manifest.json");
  expect_refused("kvspectrum", spectrum_words(folder_), 3, {kCapture, "truncated", std::to_string(size - 1)});
}

TEST_F(Catalogue, N88_Unfinished) {
  test::run_part(folder_ / kCapture, test::small_header(), 2);
  expect_refused("kvspectrum", spectrum_words(folder_), 7, {kCapture, "2 documents"});
  expect_refused("kvspectrum", {"verify", folder_ / kCapture}, 7, {kCapture, "2 documents"});
  EXPECT_THAT(expect_done("kvspectrum", {"verify", folder_ / kCapture, "--allow-incomplete"}).out, HasSubstr("sound"));
  expect_done("kvspectrum", spectrum_words(folder_, {"--allow-incomplete"}));
}

TEST_F(Catalogue, N89_VersionsAndAttributes) {
  write_capture(folder_);
  const std::int64_t newer = 3, number = 3;
  replace_root_attribute(folder_, "version", &newer);
  expect_refused("kvspectrum", spectrum_words(folder_), 4, {kCapture, "/@version: found 3, expected 1 to 2"});
  write_capture(folder_, {"--force"});
  replace_root_attribute(folder_, "architecture", &number);
  expect_refused("kvspectrum", spectrum_words(folder_), 3, {kCapture, "/@architecture: expected one string"});
  replace_root_attribute(folder_, "architecture", nullptr);
  expect_refused("kvspectrum", spectrum_words(folder_), 3, {kCapture, "/@architecture: the attribute is missing"});
}

TEST_F(Catalogue, N90_ShapesAndTypesOtherThanDeclared) {
  write_capture(folder_);
  replace_dataset(folder_, kStates, {2, 32, 7}, H5T_IEEE_F32LE);
  expect_refused("kvspectrum", spectrum_words(folder_), 3, {kStates, "found shape [2, 32, 7], expected [2, 32, 8]"});
  replace_dataset(folder_, kStates, {2, 256}, H5T_IEEE_F32LE);
  expect_refused("kvspectrum", spectrum_words(folder_), 3, {kStates, "found shape [2, 256], expected [2, 32, 8]"});
  replace_dataset(folder_, kStates, {2, 32, 8}, H5T_IEEE_F64LE);
  expect_refused("kvspectrum", spectrum_words(folder_), 3, {kStates, "the stored type"});
}

TEST_F(Catalogue, N91_StorageThatTheFileDoesNotHave) {
  write_capture(folder_);
  const std::int64_t huge = std::int64_t{1} << 58;
  replace_dataset(folder_, kStates, {2, 32, 8}, H5T_IEEE_F32LE);  // never written, so never stored
  expect_refused("kvspectrum", spectrum_words(folder_), 3, {kStates, "found 0 stored bytes, expected 2048"});
  replace_root_attribute(folder_, "tokens", &huge);
  expect_refused("kvspectrum", spectrum_words(folder_), 3, {kCapture, "/tokens: found 288230376151711744"});
}

TEST_F(Catalogue, N92_CompressedData) {
  write_capture(folder_);
  const hsize_t chunk = 31;
  replace_dataset(folder_, kNll, {31}, H5T_IEEE_F32LE, [&](hid_t creation) {
    H5Pset_chunk(creation, 1, &chunk);
    H5Pset_deflate(creation, 9);
  });
  expect_refused("kvspectrum", spectrum_words(folder_), 4, {kNll, "found chunked"});
}

TEST_F(Catalogue, N93_DataInAnotherFile) {
  write_capture(folder_);
  replace_dataset(folder_, kNll, {31}, H5T_IEEE_F32LE,
                  [](hid_t creation) { H5Pset_external(creation, "/etc/passwd", 0, 124); });
  expect_refused("kvspectrum", spectrum_words(folder_), 3, {kNll, "found external storage"});
}

TEST_F(Catalogue, N94_LinksAndVirtualDatasets) {
  write_capture(folder_);
  edit_capture(folder_, [](hid_t file) {
    H5Ldelete(file, kStates, H5P_DEFAULT);
    H5Lcreate_soft("/doc/00000/layer/02/k_pre", file, kStates, H5P_DEFAULT, H5P_DEFAULT);
  });
  expect_refused("kvspectrum", spectrum_words(folder_), 3, {kStates, "found a soft link, expected a hard one"});
  edit_capture(folder_, [](hid_t file) {
    H5Ldelete(file, "/doc/00001", H5P_DEFAULT);
    H5Lcreate_external("/etc/passwd", "/doc/00001", file, "/doc/00001", H5P_DEFAULT, H5P_DEFAULT);
  });
  expect_refused("kvspectrum", spectrum_words(folder_), 3, {"/doc/00001", "found an external link"});
  write_capture(folder_, {"--force"});
  const hsize_t size = 31;
  const hid_t source = H5Screate_simple(1, &size, nullptr);
  replace_dataset(folder_, kNll, {31}, H5T_IEEE_F32LE,
                  [&](hid_t creation) { H5Pset_virtual(creation, source, "/etc/passwd", "/x", source); });
  H5Sclose(source);
  expect_refused("kvspectrum", spectrum_words(folder_), 3, {kNll, "found a virtual dataset"});
}

TEST_F(Catalogue, N95_AnUnknownFilter) {
  write_capture(folder_);
  const hsize_t chunk = 31;
  replace_dataset(folder_, kNll, {31}, H5T_IEEE_F32LE, [&](hid_t creation) {
    H5Pset_chunk(creation, 1, &chunk);
    H5Pset_filter(creation, 32001, H5Z_FLAG_OPTIONAL, 0, nullptr);
  });
  expect_refused("kvspectrum", spectrum_words(folder_), 4, {kNll, "found chunked"});
}

TEST_F(Catalogue, N96_AFlippedBit) {
  write_capture(folder_);
  const Json manifest = parse_json(slurp(folder_ / "c.h5.manifest.json"), "manifest");
  const std::uint64_t states = manifest.at("documents")[1].at("offsets").back().get<std::uint64_t>();
  const std::string name = "/doc/00001/" + manifest.at("names").back().get<std::string>();
  test::flip_bit(folder_ / kCapture, states + 100, 3);
  const Outcome outcome = run("kvspectrum", spectrum_words(folder_, {"--quiet"}));
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(kCapture), HasSubstr(name), HasSubstr("CRC-32C")));
  EXPECT_FALSE(fs::exists(folder_ / "out/s/spectrum.json"));  // a checkpoint of the sound document may be there
  EXPECT_THAT(expect_done("kvspectrum", spectrum_words(folder_, {"--skip-corrupt", "--force"})).err,
              HasSubstr("left out 1 of 2 documents"));
  test::flip_bit(folder_ / kCapture, 100);
  expect_refused("kvspectrum", spectrum_words(folder_, {"--skip-corrupt", "--force"}), 3,
                 {kCapture, "metadata with SHA-256"});
}

TEST_F(Catalogue, N97_NumbersThatAreNotFinite) {
  write_capture(folder_);
  std::vector<float> values(std::size_t{2} * 32 * 8);
  for (std::size_t n = 0; n < values.size(); ++n) values[n] = static_cast<float>(n % 7);
  values[32 * 8 + 16 * 8 + 5] = std::nanf("");
  edit_capture(folder_, [&](hid_t file) {
    const hid_t dataset = H5Dopen2(file, kStates, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(dataset);
  });
  const Outcome outcome = run("kvspectrum", spectrum_words(folder_, {"--quiet"}));
  EXPECT_EQ(outcome.status, 5);
  EXPECT_THAT(outcome.err, HasSubstr("layer 2, head 1, token 16"));
  EXPECT_FALSE(fs::exists(folder_ / "out/s/spectrum.json"));
}

TEST_F(Catalogue, N98_OfAnotherModel) {
  write_capture(folder_, {"--states", "q_pre,k_pre"});
  write_tiny_model(folder_ / "model", TinyKind::kBiased);
  expect_refused("kvcalibrate",
                 {"elitekv", "--capture", folder_ / kCapture, "--model", folder_ / "model", "--elite", "2", "--rank",
                  "8", "--out", folder_ / "out/e.json"},
                 7, {"sha256"});
}

TEST_F(Catalogue, N99_BeingWritten) {
  write_capture(folder_);
  write("c.h5.lock", "4194303\n");
  const int lock = ::open((folder_ / "c.h5.lock").c_str(), O_RDWR);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  const Words words{"capture",  "--model", folder_ / "model", "--tokens-file",    folder_ / "tokens.jsonl",
                    "--window", "32",      "--out",           folder_ / kCapture, "--force",
                    "--quiet"};
  expect_refused("kvspectrum", words, 7, {kCapture, "process 4194303"});
  ::close(lock);
}

TEST_F(Catalogue, N100_GroupsInsideThemselves) {
  write_capture(folder_);
  edit_capture(folder_, [](hid_t file) {
    H5Ldelete(file, "/doc/00001", H5P_DEFAULT);
    H5Lcreate_hard(file, "/doc", file, "/doc/00001", H5P_DEFAULT, H5P_DEFAULT);
  });
  expect_refused("kvspectrum", spectrum_words(folder_), 3, {kCapture, "/doc/00001: found 2 members, expected 3"});
  edit_capture(folder_, [](hid_t file) {
    H5Ldelete(file, "/doc/00001", H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "/doc/00001", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (int level = 0; level < 10000; ++level) {
      const hid_t inner = H5Gcreate2(group, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
      H5Gclose(group);
      group = inner;
    }
    H5Gclose(group);
  });
  expect_refused("kvspectrum", spectrum_words(folder_), 3, {kCapture, "/doc/00001"});
}

}  // namespace
}  // namespace kvs::testing
