// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "model/checkpoints/checkpoints.h"
#include "model/decoder.h"
#include "model/model_tensors.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"
#include "tests/model/raw_tensors.h"

namespace kvs {
namespace {

using testing::HasSubstr;

std::unique_ptr<const QuantizedWeights> mxfp4_weights() {
  std::vector<std::string> notes;
  const Json config = Json::object();
  return kMxfp4.read(JsonCursor(config, "config.json"), notes);
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Values of Transformers (tests/golden/make_mxfp4_blocks.py).
TEST(Mxfp4, ValuesAreBitForBitAsInTransformers) {
  const auto archive = open_safetensors(test::golden_path("mxfp4_blocks.safetensors"));
  const auto matrix = mxfp4_weights()->find(*archive, "X");
  ASSERT_NE(matrix, nullptr);
  EXPECT_EQ(matrix->shape(), (std::vector<std::uint64_t>{2, 6, 64}));
  std::vector<float> found(matrix->rows() * matrix->columns());
  matrix->read(0, matrix->rows(), found);
  EXPECT_EQ(test::bytes_of(found), text_of(archive->find("X_expected")->bytes));
  EXPECT_EQ(mxfp4_weights()->find(*archive, "Y"), nullptr);
}

/// The golden gpt_oss with sizes that blocks of 32 divide.
Json whole_blocks(Json shapes) {
  for (auto& [name, shape] : shapes.items())
    for (Json& extent : shape)
      extent = extent == 48 ? Json(64) : extent == 56 ? Json(32) : extent == 112 ? Json(64) : extent;
  return shapes;
}

class Mxfp4Folder : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path path = test::golden_path("parity/gpt_oss.json");
    golden_ = parse_json(read_text_file(path, 1 << 20), path.string());
    golden_["config"].update({{"hidden_size", 64}, {"intermediate_size", 32}});
    golden_["tensors"] = whole_blocks(golden_["tensors"]);
    for (const auto& [name, shape] : golden_["tensors"].items()) add(name, shape.get<std::vector<std::uint64_t>>());
  }

  /// Adds a tensor by the formula; matrices of experts as blocks, and as plain values [expert, column, row].
  void add(const std::string& name, const std::vector<std::uint64_t>& shape) {
    const std::vector<float> values = test::formula_weights(name, shape, "gpt_oss");
    if (shape.size() != 3) {
      blocks_[name] = plain_[name] = {"F32", shape, test::bytes_of(values)};
      return;
    }
    const std::uint64_t experts = shape[0], columns = shape[1], rows = shape[2], scales = experts * rows * columns / 32;
    std::string codes(16 * scales, '\0'), exponents(scales, '\0');
    for (std::size_t n = 0; n < codes.size(); ++n) codes[n] = static_cast<char>(37 * n + n / 16);
    for (std::size_t n = 0; n < scales; ++n) exponents[n] = static_cast<char>(122 + n % 3);
    blocks_[name + "_blocks"] = {"U8", {experts, rows, columns / 32, 16}, codes};
    blocks_[name + "_scales"] = {"U8", {experts, rows, columns / 32}, exponents};
    const auto archive = open_safetensors(folder_.write("one.safetensors", test::safetensors_of(blocks_)));
    const auto matrix = mxfp4_weights()->find(*archive, name);
    std::vector<float> decoded(experts * rows * columns), turned(decoded.size());
    matrix->read(0, matrix->rows(), decoded);
    for (std::size_t e = 0; e < experts; ++e)
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t column = 0; column < columns; ++column)
          turned[(e * columns + column) * rows + row] = decoded[(e * rows + row) * columns + column];
    plain_[name] = {"F32", shape, test::bytes_of(turned)};
  }

  std::filesystem::path write(const char* name, const test::RawTensors& tensors, bool quantised) {
    Json config = golden_["config"];
    if (quantised)
      config["quantization_config"] = {{"quant_method", "mxfp4"}, {"modules_to_not_convert", Json::array()}};
    std::filesystem::create_directories(folder_ / name);
    write_file_atomically(folder_ / name / "config.json", dump_json(config), true);
    write_file_atomically(folder_ / name / "model.safetensors", test::safetensors_of(tensors), true);
    return folder_ / name;
  }

  static std::vector<float> nll_of(const std::filesystem::path& path) {
    const auto backend = make_backend("cpu", DType::kF32, 1);
    const auto source = ModelSource::open(path);
    const Model model(*source, *backend);
    Decoder decoder(model);
    return document_nll(decoder, std::vector<std::int32_t>{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5});
  }

  void expect_refused(ErrorCode code, const std::string& message) {
    try {
      (void)ModelSource::open(write("bad", blocks_, true));
      ADD_FAILURE() << "no error, expected " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(std::string(error.what()), HasSubstr(message));
    }
  }

  static constexpr const char* kDown = "model.layers.0.mlp.experts.down_proj";
  test::TemporaryDirectory folder_;
  Json golden_;
  test::RawTensors blocks_, plain_;
};

TEST_F(Mxfp4Folder, AModelOfBlocksIsThatOfItsValues) {
  EXPECT_EQ(nll_of(write("blocks", blocks_, true)), nll_of(write("plain", plain_, false)));
}

TEST_F(Mxfp4Folder, PartsThatAreMissingOrDoNotFitAreRefused) {
  const test::RawTensor scales = blocks_.at(std::string(kDown) + "_scales");
  blocks_.erase(std::string(kDown) + "_scales");
  expect_refused(ErrorCode::kInput, "down_proj_scales");
  blocks_[std::string(kDown) + "_scales"] = {
      "U8", {scales.shape[0], scales.shape[1] / 2, 2 * scales.shape[2]}, scales.bytes};
  expect_refused(ErrorCode::kInput, "a scale for each block");
  blocks_[std::string(kDown) + "_scales"] = {"I8", scales.shape, scales.bytes};
  expect_refused(ErrorCode::kUnsupported, "found type I8");
  blocks_[std::string(kDown) + "_scales"] = scales;
  test::RawTensor& codes = blocks_.at(std::string(kDown) + "_blocks");
  codes.shape = {codes.shape[0], codes.shape[1] * codes.shape[2] * codes.shape[3]};
  expect_refused(ErrorCode::kInput, "expected [expert, row, columns / 32, 16]");
  blocks_.erase(std::string(kDown) + "_blocks");
  expect_refused(ErrorCode::kInput, "found scales without");
}

}  // namespace
}  // namespace kvs
