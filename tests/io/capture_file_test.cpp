// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/capture_file.h"

#include <gmock/gmock.h>
#include <hdf5.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "io/digest.h"
#include "io/file.h"
#include "io/hdf5/capture_layout.h"
#include "tests/io/capture_fixture.h"

namespace kvs {
namespace {

namespace fs = std::filesystem;
using namespace test;
using testing::ElementsAre;
using testing::ElementsAreArray;

/// Reads a dataset by plain libhdf5, converted to `memory_type`.
template <class T>
std::vector<T> read_plain(hid_t file, const std::string& name, hid_t memory_type,
                          std::vector<hsize_t>* shape = nullptr) {
  const hid_t dataset = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
  EXPECT_GE(dataset, 0) << name;
  const hid_t space = H5Dget_space(dataset);
  std::vector<hsize_t> extents(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  EXPECT_GE(H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << name;
  if (shape != nullptr) *shape = extents;
  H5Sclose(space);
  H5Dclose(dataset);
  return values;
}

std::int64_t read_integer_attribute(hid_t file, const char* name) {
  const hid_t attribute = H5Aopen(file, name, H5P_DEFAULT);
  std::int64_t value = -1;
  H5Aread(attribute, H5T_NATIVE_INT64, &value);
  H5Aclose(attribute);
  return value;
}

class CaptureDirectory : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  fs::path path_ = directory_ / "out.h5";
};
class CaptureFile : public CaptureDirectory, public testing::WithParamInterface<DType> {};
class CaptureWriting : public CaptureDirectory {};
class CaptureReading : public CaptureDirectory {};

TEST_P(CaptureFile, GivesBackWhatWasWritten) {
  const CaptureHeader header = small_header(GetParam());
  run_capture(path_, header);
  EXPECT_THAT(directory_.names(), ElementsAre("out.h5", "out.h5.manifest.json"));
  const auto reader = CaptureReader::open(path_, {});
  EXPECT_EQ(reader->documents(), 3U);
  EXPECT_EQ(reader->header().model_name, header.model_name);
  EXPECT_EQ(reader->header().rope_scaling, header.rope_scaling);
  EXPECT_EQ(reader->header().rope_frequencies, header.rope_frequencies);
  EXPECT_EQ(reader->header().layers, header.layers);
  EXPECT_EQ(reader->header().states, header.states);
  EXPECT_EQ(reader->header().store, GetParam());
  for (std::uint64_t document = 0; document < 3; ++document) {
    EXPECT_EQ(reader->tokens(document), tokens_of(header, document));
    EXPECT_EQ(reader->nll(document), nll_of(header, document));
    for (const std::int32_t layer : header.layers)
      for (const StateKind kind : header.states) {
        const std::vector<float> expected = states_of(header, document, layer, kind);
        std::vector<float> found(expected.size());
        EXPECT_TRUE(reader->read_states(document, layer, kind, {found, shape_of(header, kind)}));
        EXPECT_EQ(found, expected);
      }
  }
}

TEST_P(CaptureFile, IsAPlainHdf5FileOfTheDocumentedLayout) {
  const CaptureHeader header = small_header(GetParam());
  run_capture(path_, header);
  const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  EXPECT_EQ(read_integer_attribute(file, "version"), 1);
  EXPECT_EQ(read_integer_attribute(file, "complete"), 1);
  EXPECT_EQ(read_integer_attribute(file, "kv_heads"), 2);
  EXPECT_EQ(read_integer_attribute(file, "documents"), 3);
  std::vector<hsize_t> shape;
  EXPECT_EQ(read_plain<std::int32_t>(file, "/doc/00002/tokens", H5T_NATIVE_INT32, &shape), tokens_of(header, 2));
  EXPECT_THAT(shape, ElementsAre(17));
  EXPECT_EQ(read_plain<float>(file, "/doc/00001/nll", H5T_NATIVE_FLOAT), nll_of(header, 1));
  const std::vector<float> expected = states_of(header, 2, 13, StateKind::kKPre);
  const std::string name = "/doc/00002/layer/13/k_pre";
  if (GetParam() == DType::kBF16) {
    std::vector<float> widened;
    for (const std::uint16_t bits : read_plain<std::uint16_t>(file, name, H5T_NATIVE_UINT16, &shape))
      widened.push_back(bf16_to_f32(bits));
    EXPECT_EQ(widened, expected);
  } else {
    EXPECT_EQ(read_plain<float>(file, name, H5T_NATIVE_FLOAT, &shape), expected);
  }
  EXPECT_THAT(shape, ElementsAre(2, 17, 6));
  H5Fclose(file);
}

TEST_P(CaptureFile, HoldsLayersOfSeveralSizes) {
  const CaptureHeader header = mixed_header(GetParam());
  auto writer = CaptureWriter::open(path_, header, {}, {});
  for (std::uint64_t document = 0; document < header.documents; ++document) write_document(*writer, header, document);
  writer->finish();
  std::filesystem::remove(path_.string() + ".manifest.json");  // the file alone is walked and checked
  const auto reader = CaptureReader::open(path_, {});
  EXPECT_EQ(header_to_json(reader->header()), header_to_json(header));
  for (const std::int32_t layer : header.layers)
    for (const StateKind kind : header.states) {
      std::vector<float> found(states_of(header, 2, layer, kind).size());
      EXPECT_TRUE(
          reader->read_states(2, layer, kind, {found, shape_of(header, kind, static_cast<std::size_t>(layer))}));
      EXPECT_EQ(found, states_of(header, 2, layer, kind));
    }
}

TEST_P(CaptureFile, WidensEveryStoredBitPatternExactly) {
  // All 16-bit patterns of finite numbers (or as many f32 ones); 65536 = 2 heads · 16384 tokens · 2.
  CaptureHeader header = small_header(GetParam(), 1);
  header.layers = {0};
  header.states = {StateKind::kV};
  header.head_dim = header.rotary_dim = 2;
  header.rope_frequencies = {1.0};
  header.tokens = 16384;
  std::vector<float> values(65536);
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    values[i] = GetParam() == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
    if (!std::isfinite(values[i])) values[i] = -0.0F;
  }
  const auto writer = CaptureWriter::open(path_, header, test_identity(), {});
  writer->begin_document(tokens_of(header, 0));
  writer->write_states(0, StateKind::kV, {values, shape_of(header, StateKind::kV)});
  writer->write_nll(nll_of(header, 0));
  writer->commit_document();
  writer->finish();
  std::vector<float> found(values.size());
  CaptureReader::open(path_, {})->read_states(0, 0, StateKind::kV, {found, shape_of(header, StateKind::kV)});
  EXPECT_EQ(std::memcmp(found.data(), values.data(), values.size() * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(Stores, CaptureFile, testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_F(CaptureWriting, ManifestTellsOthersHowToCheckTheFile) {
  const CaptureHeader header = small_header();
  run_capture(path_, header);
  const std::string bytes = read_all(path_);
  const Json manifest = parse_json(read_all(directory_ / "out.h5.manifest.json"), "manifest");
  EXPECT_EQ(manifest["file_bytes"], bytes.size());
  // The digest by its definition: SHA-256 of the bytes outside the datasets.
  std::string metadata = bytes;
  std::vector<std::pair<std::size_t, std::size_t>> data;
  for (const Json& document : manifest["documents"])
    for (std::size_t i = 0; i < manifest["names"].size(); ++i) {
      const std::size_t offset = document["offsets"][i], size = manifest["bytes"][i];
      EXPECT_EQ(document["crc32c"][i], crc32c_by_table(std::as_bytes(std::span(bytes).subspan(offset, size))));
      data.emplace_back(offset, size);
    }
  std::ranges::sort(data, std::greater());
  for (const auto& [offset, size] : data) metadata.erase(offset, size);
  EXPECT_EQ(manifest["metadata_sha256"], sha256_of(metadata));
  EXPECT_EQ(data.size(), 3 * (2 + 2 * 3));
}

TEST_F(CaptureWriting, RefusesAnOutputThatExistsUnlessForced) {
  directory_.write("out.h5", "precious");
  expect_error(ErrorCode::kConflict, "exists", [&] { run_capture(path_, small_header()); });
  expect_error(ErrorCode::kConflict, "exists", [&] { run_capture(path_, small_header(), {.resume = true}); });
  EXPECT_EQ(read_all(path_), "precious");
  EXPECT_THAT(directory_.names(), ElementsAre("out.h5"));
  run_part(path_, small_header(), 1, {.force = true});
  EXPECT_EQ(read_all(path_), "precious");  // until the new file is complete
  run_capture(path_, small_header(), {.resume = true});
  EXPECT_EQ(CaptureReader::open(path_, {})->documents(), 3U);
}

TEST_F(CaptureWriting, RefusesToLoseAnUnfinishedCapture) {
  run_part(path_, small_header(), 2);
  EXPECT_THAT(directory_.names(), ElementsAre("out.h5.journal", "out.h5.partial"));
  expect_error(ErrorCode::kConflict, "resume goes on with it", [&] { run_capture(path_, small_header()); });
  const auto writer = CaptureWriter::open(path_, small_header(), test_identity(), {.force = true});
  EXPECT_EQ(writer->next_document(), 0U);
}

TEST_F(CaptureWriting, ResumeNamesEveryFieldThatDiffers) {
  run_part(path_, small_header(), 2);
  CaptureHeader other = small_header();
  other.model_sha256 = std::string(64, 'b');
  expect_error(ErrorCode::kConflict, "capture.model_sha256", [&] { run_capture(path_, other, {.resume = true}); });
  expect_error(ErrorCode::kConflict, "window", [&] {
    CaptureWriter::open(path_, small_header(), Json{{"tool_version", "1"}, {"window", 18}}, {.resume = true});
  });
  EXPECT_EQ(CaptureWriter::open(path_, small_header(), test_identity(), {.resume = true})->next_document(), 2U);
}

TEST_F(CaptureWriting, StartsAgainWhenThereIsNothingToResume) {
  run_capture(path_, small_header(), {.resume = true});
  EXPECT_EQ(CaptureReader::open(path_, {})->documents(), 3U);
}

TEST_F(CaptureWriting, ResumingAFinishedRunChangesNothing) {
  run_capture(path_, small_header());
  const std::string before = read_all(path_);
  EXPECT_EQ(CaptureWriter::open(path_, small_header(), test_identity(), {.resume = true})->next_document(), 3U);
  run_capture(path_, small_header(), {.resume = true});
  EXPECT_EQ(read_all(path_), before);
  EXPECT_THAT(directory_.names(), ElementsAre("out.h5", "out.h5.manifest.json"));
  expect_error(ErrorCode::kConflict, "exists",
               [&] { run_capture(path_, small_header(DType::kF16), {.resume = true}); });
}

TEST_F(CaptureWriting, SecondWriterIsRefusedAndChangesNothing) {
  const auto writer = CaptureWriter::open(path_, small_header(), test_identity(), {});
  write_document(*writer, small_header(), 0);
  const std::string before = read_all(directory_ / "out.h5.partial");
  for (const CaptureWriter::Options options : {CaptureWriter::Options{}, {.force = true}, {.resume = true}})
    expect_error(ErrorCode::kConflict, "process " + std::to_string(::getpid()),
                 [&] { CaptureWriter::open(path_, small_header(), test_identity(), options); });
  EXPECT_EQ(read_all(directory_ / "out.h5.partial"), before);
}

TEST_F(CaptureWriting, RefusesNumbersThatTheStoredTypeCannotHold) {
  const CaptureHeader header = small_header(DType::kF16);
  const auto writer = CaptureWriter::open(path_, header, test_identity(), {});
  writer->begin_document(tokens_of(header, 0));
  std::vector<float> values = states_of(header, 0, 13, StateKind::kV);
  // Head 1, token 2, channel 3 of [2, 17, 6]; 65520 is the smallest value that rounds to infinity.
  values[1 * 17 * 6 + 2 * 6 + 3] = 65520.0F;
  expect_error(ErrorCode::kData, "layer 13, head 1, token 2", [&] {
    writer->write_states(13, StateKind::kV, {values, shape_of(header, StateKind::kV)});
  });
}

TEST_F(CaptureWriting, CommitsOnlyWholeDocuments) {
  const CaptureHeader header = small_header();
  const auto writer = CaptureWriter::open(path_, header, test_identity(), {});
  writer->begin_document(tokens_of(header, 0));
  writer->write_nll(nll_of(header, 0));
  expect_error(ErrorCode::kInternal, "before it was written", [&] { writer->commit_document(); });
  expect_error(ErrorCode::kInternal, "before all documents", [&] { writer->finish(); });
}

TEST_F(CaptureWriting, FinishFindsWhatTheDiskChanged) {
  {
    const auto writer = CaptureWriter::open(path_, small_header(), test_identity(), {});
    for (std::uint64_t document = 0; document < 3; ++document) write_document(*writer, small_header(), document);
    // The last dataset ends at the end of the file.
    flip_bit(directory_ / "out.h5.partial", fs::file_size(directory_ / "out.h5.partial") - 1);
    expect_error(ErrorCode::kInput, "/doc/00002/layer/13/v", [&] { writer->finish(); });
  }
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(CaptureWriting, ResumeRefusesAPartialFileWhoseMetadataChanged) {
  run_part(path_, small_header(), 1);
  flip_bit(directory_ / "out.h5.partial", 100);
  expect_error(ErrorCode::kInput, "metadata with SHA-256",
               [&] { run_capture(path_, small_header(), {.resume = true}); });
}

TEST_F(CaptureReading, FindsOneFlippedBitOfDataAndNamesTheDataset) {
  const CaptureHeader header = small_header();
  run_capture(path_, header);
  const Json manifest = parse_json(read_all(directory_ / "out.h5.manifest.json"), "manifest");
  // Dataset 5 is layer 13's first: tokens, nll, three states of layer 0, then q_pre of layer 13.
  ASSERT_EQ(manifest["names"][5], "layer/13/q_pre");
  flip_bit(path_, manifest["documents"][1]["offsets"][5].get<std::uint64_t>() + 9, 3);
  std::vector<float> states(4 * 17 * 6);
  const TensorView<float, 3> out(states, {4, 17, 6});
  const auto strict = CaptureReader::open(path_, {});
  expect_error(ErrorCode::kInput, "/doc/00001/layer/13/q_pre: found CRC-32C",
               [&] { strict->read_states(1, 13, StateKind::kQPre, out); });
  const auto lenient = CaptureReader::open(path_, {.skip_corrupt = true});
  EXPECT_FALSE(lenient->read_states(1, 13, StateKind::kQPre, out));
  EXPECT_TRUE(lenient->read_states(1, 0, StateKind::kQPre, out));
  Json report;
  EXPECT_EQ(verify_capture(path_, {}, report), 1U);
  EXPECT_EQ(report["damaged"][0]["dataset"], "/doc/00001/layer/13/q_pre");
  EXPECT_EQ(report["checked_against"], "manifest");
}

TEST_F(CaptureReading, RefusesEveryFlippedByteOfMetadataBeforeTheLibrarySeesIt) {
  run_capture(path_, small_header());
  const Json manifest = parse_json(read_all(directory_ / "out.h5.manifest.json"), "manifest");
  const std::uint64_t first_data = manifest["documents"][0]["offsets"][0];
  const std::uint64_t end = std::min<std::uint64_t>(first_data, 4096);
  for (std::uint64_t offset = 0; offset < end; offset += 37) {
    flip_bit(path_, offset, static_cast<int>(offset % 8));
    expect_error(ErrorCode::kInput, "metadata with SHA-256", [&] { CaptureReader::open(path_, {}); });
    flip_bit(path_, offset, static_cast<int>(offset % 8));
  }
  EXPECT_EQ(CaptureReader::open(path_, {})->documents(), 3U);
}

TEST_F(CaptureReading, SaysBothSizesOfATruncatedFile) {
  run_capture(path_, small_header());
  const auto size = fs::file_size(path_);
  fs::resize_file(path_, size - 1);
  expect_error(ErrorCode::kInput, std::to_string(size - 1) + " bytes: it was truncated",
               [&] { CaptureReader::open(path_, {}); });
  fs::remove(directory_ / "out.h5.manifest.json");
  expect_error(ErrorCode::kInput, "truncated file: eof = " + std::to_string(size - 1),
               [&] { CaptureReader::open(path_, {}); });
}

TEST_F(CaptureReading, ReadsACompleteFileWithoutManifestAfterWalkingIt) {
  const CaptureHeader header = small_header();
  run_capture(path_, header);
  fs::remove(directory_ / "out.h5.manifest.json");
  std::vector<float> states(2 * 17 * 6);
  const auto reader = CaptureReader::open(path_, {});
  EXPECT_EQ(reader->header().states, header.states);
  EXPECT_TRUE(reader->read_states(2, 13, StateKind::kV, {states, {2, 17, 6}}));
  EXPECT_EQ(states, states_of(header, 2, 13, StateKind::kV));
  EXPECT_FALSE(reader->has_checksums());
  Json report;
  expect_error(ErrorCode::kInput, "its data cannot be checked", [&] { verify_capture(path_, {}, report); });
}

TEST_F(CaptureReading, ReadsAnUnfinishedCaptureOnlyWhenAllowed) {
  const CaptureHeader header = small_header();
  run_part(path_, header, 2);
  for (const fs::path& name : {path_, directory_ / "out.h5.partial"}) {
    expect_error(ErrorCode::kConflict, "2 documents", [&] { CaptureReader::open(name, {}); });
    const auto reader = CaptureReader::open(name, {.allow_incomplete = true});
    EXPECT_EQ(reader->documents(), 2U);
    EXPECT_EQ(reader->header().documents, 3U);
    EXPECT_EQ(reader->tokens(1), tokens_of(header, 1));
    expect_error(ErrorCode::kInternal, "no document 2", [&] { reader->tokens(2); });
  }
  Json report;
  EXPECT_EQ(verify_capture(path_, {.allow_incomplete = true}, report), 0U);
  EXPECT_EQ(report["complete"], false);
  EXPECT_EQ(report["documents"], 2);
}

TEST_F(CaptureReading, RefusesAnUnfinishedFileThatLostItsJournal) {
  run_part(path_, small_header(), 2);
  fs::rename(directory_ / "out.h5.partial", path_);
  fs::remove(directory_ / "out.h5.journal");
  expect_error(ErrorCode::kConflict, "complete is 0", [&] { CaptureReader::open(path_, {}); });
  expect_error(ErrorCode::kConflict, "complete is 0", [&] { CaptureReader::open(path_, {.allow_incomplete = true}); });
}

TEST_F(CaptureReading, RefusesACaptureThatIsBeingWritten) {
  const auto writer = CaptureWriter::open(path_, small_header(), test_identity(), {});
  expect_error(ErrorCode::kConflict, "being written by process " + std::to_string(::getpid()),
               [&] { CaptureReader::open(path_, {.allow_incomplete = true}); });
}

TEST_F(CaptureReading, NamesLayerHeadAndTokenOfANan) {
  const CaptureHeader header = small_header(DType::kF32, 1);
  run_capture(path_, header);
  fs::remove(directory_ / "out.h5.manifest.json");  // otherwise the checksum would be the error
  const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, "/doc/00000/layer/00/k_pre", H5P_DEFAULT);
  std::vector<float> values = states_of(header, 0, 0, StateKind::kKPre);
  values[1 * 17 * 6 + 16 * 6 + 5] = std::numeric_limits<float>::quiet_NaN();
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Dclose(dataset);
  H5Fclose(file);
  expect_error(ErrorCode::kData, "layer 0, head 1, token 16", [&] {
    CaptureReader::open(path_, {})->read_states(0, 0, StateKind::kKPre, {values, {2, 17, 6}});
  });
}

}  // namespace
}  // namespace kvs
