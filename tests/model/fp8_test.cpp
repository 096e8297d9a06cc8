// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "core/error.h"
#include "model/checkpoints/checkpoints.h"
#include "model/decoder.h"
#include "model/model_tensors.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"
#include "tests/model/raw_tensors.h"

namespace kvs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using test::bytes_of;
using test::RawTensors;

/// Reads quantization_config. @param block  null: one scale for a matrix
std::unique_ptr<const QuantizedWeights> fp8_weights(const Json& block) {
  std::vector<std::string> notes;
  const Json config{{"weight_block_size", block}};
  return kFp8.read(JsonCursor(config, "config.json"), notes);
}

/// Values of PyTorch (tests/golden/make_fp8_blocks.py).
class GoldenBlocks : public testing::TestWithParam<const char*> {};

TEST_P(GoldenBlocks, AreBitForBitAsInPyTorch) {
  const auto archive = open_safetensors(test::golden_path("fp8_blocks.safetensors"));
  const std::string name = GetParam();
  const StoredTensor& weight = *archive->find(name + ".weight");
  const auto matrix = fp8_weights(name.starts_with("one") ? Json() : Json{8, 16})->find(*archive, name + ".weight");
  ASSERT_NE(matrix, nullptr);
  const std::size_t rows = weight.rows(), columns = weight.columns();
  const std::vector<float> expected = test::values_of(*archive->find(name + ".expected"));
  const TensorRows all(*archive, weight, {}, {.first = 0, .rows = rows, .run = rows, .stride = rows}, matrix.get());
  std::vector<float> found(rows * columns);
  all.read(0, rows, found);
  EXPECT_EQ(bytes_of(found), bytes_of(expected));
  // Row by row, and as the second half of a fused tensor whose rows are
  // interleaved.
  std::vector<float> row(columns);
  const TensorRows part(*archive, weight, {}, {.first = 3, .rows = rows / 2, .run = 3, .stride = 6}, matrix.get());
  for (const std::size_t at : {0U, 4U, 8U}) {
    part.read(at, 1, row);
    const std::size_t stored = 3 + at / 3 * 6 + at % 3;
    EXPECT_EQ(bytes_of(row), bytes_of(expected).substr(stored * columns * 4, columns * 4)) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenBlocks,
                         testing::Values("whole", "edge", "bf16", "e8m0", "u8", "one", "one_listed"),
                         [](const auto& name) { return std::string(name.param); });

// Two experts in one tensor; the second has other scales.
TEST(StackedFp8, EachExpertIsDecodedLikeItsMatrixAlone) {
  const auto golden = open_safetensors(test::golden_path("fp8_blocks.safetensors"));
  const auto bytes = [&](const std::string& name) {
    const std::span<const std::byte> stored = golden->find(name)->bytes;
    return std::string(reinterpret_cast<const char*>(stored.data()), stored.size());
  };
  const std::string codes = bytes("edge.weight"), scales = bytes("edge.weight_scale_inv");
  std::vector<float> doubled = test::values_of(*golden->find("edge.weight_scale_inv"));
  for (float& scale : doubled) scale *= 2;
  const test::TemporaryDirectory folder;
  const auto archive = open_safetensors(folder.write(
      "w.safetensors", test::safetensors_of({{"up", {"F8_E4M3", {2, 21, 29}, codes + codes}},
                                             {"up_scale_inv", {"F32", {2, 3, 2}, scales + bytes_of(doubled)}}})));
  const auto matrix = fp8_weights({8, 16})->find(*archive, "up");
  ASSERT_NE(matrix, nullptr);
  ASSERT_EQ(matrix->rows(), 42U);
  std::vector<float> found(42 * 29), expected = test::values_of(*golden->find("edge.expected")), columns(5);
  matrix->read(0, 42, found);
  for (std::size_t n = 0; n < 21 * 29; ++n) expected.push_back(2 * expected[n]);
  EXPECT_EQ(bytes_of(found), bytes_of(expected));
  matrix->read_columns(30, 14, columns);  // over the border of two blocks
  EXPECT_EQ(bytes_of(columns), bytes_of({expected.begin() + 30 * 29 + 14, expected.begin() + 30 * 29 + 19}));
}

/// The golden Llama with its projections in F8_E4M3, blocks of 16 rows and 20
/// columns, and its decoded twin.
class ScaledModel : public testing::Test {
 protected:
  ScaledModel() {
    const std::filesystem::path path = test::golden_path("parity/llama.json");
    const Json golden = parse_json(read_text_file(path, 1 << 20), path.string());
    config_ = golden["config"];
    for (const auto& [name, json] : golden["tensors"].items()) {
      const auto shape = json.get<std::vector<std::uint64_t>>();
      const std::vector<float> values = test::formula_weights(name, shape, "llama");
      plain_[name] = scaled_[name] = {"F32", shape, bytes_of(values)};
      if (name.ends_with("_proj.weight")) scale(name, shape, values);
    }
    config_["quantization_config"] = {{"quant_method", "fp8"},
                                      {"fmt", "e4m3"},
                                      {"activation_scheme", "dynamic"},
                                      {"modules_to_not_convert", {"lm_head"}},
                                      {"weight_block_size", {16, 20}}};
  }

  void scale(const std::string& name, const std::vector<std::uint64_t>& shape, const std::vector<float>& values) {
    const std::size_t columns = (shape[1] + 19) / 20, rows = (shape[0] + 15) / 16;
    std::vector<float> scales(rows * columns), decoded(values.size());
    for (std::size_t n = 0; n < scales.size(); ++n) scales[n] = 0.01F * static_cast<float>(n + 1);
    std::string codes;
    for (std::size_t n = 0; n < values.size(); ++n) {
      const std::size_t row = n / shape[1], column = n % shape[1];
      // Codes 0 to 63 are below 2; each stands for (1 + m / 8) · 2^(e − 7), or
      // m · 2^−9.
      const auto code = static_cast<unsigned>((values[n] + 1.0F) * 1000.0F) % 64U;
      const auto mantissa = static_cast<float>(code % 8);
      const float value =
          code < 8 ? mantissa * 0x1p-9F : std::ldexp(1.0F + mantissa / 8, static_cast<int>(code / 8) - 7);
      codes += static_cast<char>(code | (n % 3 == 0 ? 0x80U : 0U));
      decoded[n] = (n % 3 == 0 ? -value : value) * scales[row / 16 * columns + column / 20];
    }
    scaled_[name] = {"F8_E4M3", shape, codes};
    scaled_[name + "_scale_inv"] = {"F32", {rows, columns}, bytes_of(scales)};
    plain_[name].bytes = bytes_of(decoded);
  }

  std::unique_ptr<ModelSource> open(const RawTensors& tensors) const {
    std::filesystem::create_directories(folder_ / "m");
    write_file_atomically(folder_ / "m" / "config.json", dump_json(config_), true);
    write_file_atomically(folder_ / "m" / "model.safetensors", test::safetensors_of(tensors), true);
    return ModelSource::open(folder_ / "m");
  }

  std::vector<float> run(const RawTensors& tensors) const {
    const auto backend = make_backend("cpu", DType::kF32, 1);
    const auto source = open(tensors);
    const Model model(*source, *backend);
    Decoder decoder(model);
    return document_nll(decoder, std::vector<std::int32_t>{7, 1, 99, 12, 12, 60, 130, 3});
  }

  void expect_refused(ErrorCode code, const std::string& message) const {
    test::expect_error(code, message, [&] { open(scaled_); });
  }

  static constexpr const char* kWeight = "model.layers.1.mlp.up_proj.weight";
  static constexpr const char* kScales = "model.layers.1.mlp.up_proj.weight_scale_inv";
  test::TemporaryDirectory folder_;
  Json config_;
  RawTensors plain_, scaled_;
};

TEST_F(ScaledModel, ComputesAsItsDecodedWeights) {
  config_["quantization_config"]["fmt"] = "float8_e4m3fn";  // as MiniMax writes it
  const auto source = open(scaled_);
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("activations are not quantised")));
  const std::vector<float> found = run(scaled_), key = source->projection(1, 'k');
  config_.erase("quantization_config");
  EXPECT_EQ(found, run(plain_));
  EXPECT_EQ(key, open(plain_)->projection(1, 'k'));
}

TEST_F(ScaledModel, ItsDigestCoversWeightsAndScales) {
  const std::string digest = open(scaled_)->sha256();
  scaled_[kScales].bytes[1] ^= 1;
  const std::string other = open(scaled_)->sha256();
  EXPECT_NE(other, digest);
  scaled_[kWeight].bytes[0] ^= 1;
  EXPECT_NE(open(scaled_)->sha256(), other);
}

TEST_F(ScaledModel, ItsActivationScalesAreSkippedInANote) {
  scaled_["model.layers.1.mlp.up_proj.activation_scale"] = {"F32", {}, bytes_of({1})};
  EXPECT_THAT(open(scaled_)->notes(), testing::Contains("skipped 1 tensor of: scales of activations"));
}

TEST_F(ScaledModel, ValuesThatAreNotFiniteAreFoundWithTheirPlace) {
  scaled_[kWeight].bytes[5] = 0x7f;
  test::expect_error(ErrorCode::kData,
                     "found 1 values that are NaN, infinite or beyond f32, the "
                     "first at flat index 5",
                     [&] { run(scaled_); });
  scaled_[kWeight].bytes[5] = 0;
  scaled_[kScales].bytes.replace(0, 4, std::string("\0\0\x80\x7f", 4));
  test::expect_error(ErrorCode::kData, std::string("tensor ") + kWeight, [&] { run(scaled_); });
}

TEST_F(ScaledModel, ScalesThatDoNotFitAreRefused) {
  const RawTensors sound = scaled_;
  scaled_.erase(kScales);
  expect_refused(ErrorCode::kInput, std::string("found F8_E4M3 values, expected their scales ") + kScales);
  scaled_ = sound;
  scaled_[kScales].shape = {3, 4};
  expect_refused(ErrorCode::kInput, "weight_scale_inv: found shape [3, 4], expected [4, 3]");
  scaled_[kScales].shape = {12};
  expect_refused(ErrorCode::kInput, "found shape [12], expected [4, 3]");
  scaled_ = sound;
  scaled_[kScales].type = "I32";
  expect_refused(ErrorCode::kUnsupported, "weight_scale_inv: found type I32");
  scaled_ = sound;
  scaled_[kWeight] = plain_[kWeight];
  expect_refused(ErrorCode::kInput, std::string("found type F32 with scales ") + kScales);
  scaled_ = sound;
  config_["quantization_config"].erase("weight_block_size");
  expect_refused(ErrorCode::kInput, "expected [1, 1]");
  config_.erase("quantization_config");
  expect_refused(ErrorCode::kUnsupported, "found type F8_E4M3, which is read with a quantization_config");
}

TEST_F(ScaledModel, OtherSchemesAreRefusedByName) {
  const auto refuse = [&](const char* key, const Json& value, ErrorCode code, const std::string& message) {
    const Json sound = config_;
    config_["quantization_config"][key] = value;
    expect_refused(code, std::string("/quantization_config") + message);
    config_ = sound;
  };
  refuse("quant_method", "fbgemm_fp8", ErrorCode::kUnsupported, ": found quantised weights (fbgemm_fp8)");
  refuse("quant_method", nullptr, ErrorCode::kUnsupported, ": found quantised weights (of unknown method)");
  refuse("fmt", "e5m2", ErrorCode::kUnsupported, "/fmt: found \"e5m2\"");
  refuse("scale_fmt", "ue4m3", ErrorCode::kUnsupported, "/scale_fmt: found \"ue4m3\"");
  refuse("activation_scheme", 7, ErrorCode::kInput, "/activation_scheme: found 7");
  refuse("weight_block_size", {16}, ErrorCode::kInput, "/weight_block_size");
  refuse("weight_block_size", {16, 0}, ErrorCode::kInput, "/weight_block_size/1: found 0");
  refuse("weight_block_size", {16, -1}, ErrorCode::kInput, "/weight_block_size/1: found -1");
}

}  // namespace
}  // namespace kvs
