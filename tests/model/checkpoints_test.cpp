// SPDX-License-Identifier: Apache-2.0
#include "model/checkpoints/checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>

#include "core/error.h"
#include "model/decoder.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/golden_model.h"
#include "tests/model/projection_digests.h"
#include "tests/model/raw_tensors.h"

namespace kvs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Checkpoints, digests of their decoded values and NLLs by tests/parity/checkpoints.py.
constexpr const char* kCases[] = {"float_channel",
                                  "float_block",
                                  "int_channel_zeros",
                                  "int_group_zeros",
                                  "pack_w4",
                                  "pack_w3_zeros",
                                  "pack_w4_order",
                                  "nvfp4",
                                  "mxfp4",
                                  "mxfp8",
                                  "awq",
                                  "modelopt_channel",
                                  "modelopt_nvfp4",
                                  "modelopt_mixed",
                                  "gptq_w4",
                                  "gptq_w4_order",
                                  "gptq_w3",
                                  "gptq_w8",
                                  "bnb_nf4_nested",
                                  "bnb_fp4",
                                  "bnb_int8"};

std::filesystem::path folder_of(const std::string& name) { return test::golden_path("checkpoints/" + name); }

Json read_json(const std::filesystem::path& path) { return parse_json(read_text_file(path, 1 << 20), path.string()); }

class Checkpoints : public testing::TestWithParam<const char*> {};

TEST_P(Checkpoints, AreDecodedBitForBitAndGiveTheNllOfTransformers) {
  const std::filesystem::path folder = folder_of(GetParam());
  const Json expected = read_json(folder / "expected.json");
  const auto backend = make_backend("cpu", DType::kF32, 1);
  const auto source = ModelSource::open(folder);
  const Json digests = test::projection_digests(*source);
  for (const auto& [name, digest] : expected.at("sha256").items()) EXPECT_EQ(digests.at("0." + name), digest) << name;
  const Model model(*source, *backend);
  Decoder decoder(model);
  const auto nll = document_nll(decoder, expected.at("tokens").get<std::vector<std::int32_t>>());
  const auto reference = expected.at("nll").get<std::vector<double>>();
  ASSERT_EQ(nll.size(), reference.size());
  // f32 sums of 64 products in another order; an error of one code in 64 moves a token by more than 1e-3.
  for (std::size_t n = 0; n < nll.size(); ++n) EXPECT_NEAR(nll[n], reference[n], 5e-5) << n;
}

TEST_P(Checkpoints, RowsReadAloneAreThoseReadTogether) {
  const auto source = ModelSource::open(folder_of(GetParam()));
  const TensorRows rows = source->tensors().rows(TensorRole::kUp);
  std::vector<float> all(rows.rows() * rows.columns()), own(rows.columns()), some(3 * rows.columns());
  rows.read(0, rows.rows(), all);
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    rows.read(row, 1, own);
    EXPECT_EQ(test::bytes_of(own),
              test::bytes_of({all.begin() + row * own.size(), all.begin() + (row + 1) * own.size()}));
  }
  rows.read(17, 3, some);
  EXPECT_EQ(test::bytes_of(some), test::bytes_of({all.begin() + 17 * own.size(), all.begin() + 20 * own.size()}));
}

TEST_P(Checkpoints, ShapesAreThoseOfTheDecodedValues) {
  const auto source = ModelSource::open(folder_of(GetParam()));
  std::uint64_t values = 0;
  for (const std::vector<std::uint64_t>& shape : source->tensors().shapes())
    values += std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
  EXPECT_EQ(values, 48U * 32 + 4U * 32 * 32 + 3U * 64 * 32 + 3U * 32);
}

INSTANTIATE_TEST_SUITE_P(Cases, Checkpoints, testing::ValuesIn(kCases),
                         [](const auto& name) { return std::string(name.param); });

/// A copy of a golden checkpoint, to be changed.
class ChangedCheckpoint : public testing::Test {
 protected:
  void load(const std::string& name) {
    const std::filesystem::path folder = folder_of(name);
    config_ = read_json(folder / "config.json");
    own_ =
        std::filesystem::exists(folder / "hf_quant_config.json") ? read_json(folder / "hf_quant_config.json") : Json();
    const auto archive = open_safetensors(folder / "model.safetensors");
    tensors_.clear();
    for (const StoredTensor& tensor : archive->tensors())
      tensors_[tensor.name] = {
          tensor.type_name, tensor.shape, {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()}};
  }

  Json& quantization() { return config_["quantization_config"]; }
  Json& weights() { return quantization()["config_groups"]["group_0"]["weights"]; }
  test::RawTensor& up(const std::string& part) { return tensors_.at(kUp + part); }

  std::unique_ptr<ModelSource> open() const {
    const std::filesystem::path folder = folder_ / "m";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    write_file_atomically(folder / "config.json", dump_json(config_), true);
    if (!own_.is_null()) write_file_atomically(folder / "hf_quant_config.json", dump_json(own_), true);
    write_file_atomically(folder / "model.safetensors", test::safetensors_of(tensors_), true);
    return ModelSource::open(folder);
  }

  void expect_refused(ErrorCode code, const std::string& message) const {
    test::expect_error(code, message, [&] { open(); });
  }
  /// Expects a refusal of the checkpoint `name` after a change.
  template <class Change>
  void refuse(const std::string& name, ErrorCode code, const std::string& message, const Change& change) {
    load(name);
    change();
    expect_refused(code, message);
  }
  /// Cuts a tensor to its first rows.
  static void cut(test::RawTensor& tensor, std::uint64_t rows) {
    tensor.bytes.resize(tensor.bytes.size() / tensor.shape[0] * rows);
    tensor.shape[0] = rows;
  }

  inline static const std::string kUp = "model.layers.0.mlp.up_proj.";
  test::TemporaryDirectory folder_;
  Json config_, own_;
  test::RawTensors tensors_;
};

TEST_F(ChangedCheckpoint, NotesNameTheFormatAndWhatIsNotComputed) {
  load("pack_w4");
  EXPECT_THAT(open()->notes(), ElementsAre(HasSubstr("/quantization_config: the weights (compressed-tensors, "
                                                     "pack-quantized) are decoded; activations are not quantised")));
  load("modelopt_nvfp4");
  EXPECT_THAT(open()->notes(),
              testing::Contains(HasSubstr("hf_quant_config.json: /quantization: the weights (modelopt, NVFP4) are "
                                          "decoded; activations are not quantised, nor is the cache")));
  EXPECT_THAT(open()->notes(), testing::Contains(HasSubstr("skipped 7 tensors of: scales of activations")));
  load("gptq_w3");
  EXPECT_THAT(open()->notes(), testing::Contains(HasSubstr("the weights (gptq, 3 bits) are decoded")));
}

TEST_F(ChangedCheckpoint, TheDigestCoversEveryPart) {
  for (const auto& [name, parts] : std::map<std::string, std::vector<std::string>>{
           {"pack_w3_zeros", {"weight_packed", "weight_scale", "weight_zero_point"}},
           {"pack_w4_order", {"weight_g_idx"}},
           {"nvfp4", {"weight_packed", "weight_scale", "weight_global_scale"}},
           {"modelopt_nvfp4", {"weight", "weight_scale", "weight_scale_2"}},
           {"gptq_w4_order", {"qweight", "qzeros", "scales"}},
           {"awq", {"qweight", "qzeros", "scales"}},
           {"bnb_nf4_nested", {"weight", "weight.absmax", "weight.nested_absmax", "weight.quant_map"}},
           {"bnb_int8", {"weight", "SCB"}}}) {
    load(name);
    const std::string digest = open()->sha256();
    for (const std::string& part : parts) {
      // Another group of a reordered column must stay one of the two.
      up(part).bytes[0] ^= 1;
      EXPECT_NE(open()->sha256(), digest) << name << " " << part;
      up(part).bytes[0] ^= 1;
    }
  }
}

TEST_F(ChangedCheckpoint, PlainModulesStayPlain) {
  load("pack_w4");
  for (const char* part : {"weight_packed", "weight_scale", "weight_shape"}) tensors_.erase(kUp + part);
  tensors_[kUp + "weight"] = {"F32", {64, 32}, std::string(64 * 32 * 4, '\0')};
  const auto source = open();
  std::vector<float> values(64 * 32, 1);
  source->tensors().rows(TensorRole::kUp).read(0, 64, values);
  EXPECT_EQ(values, std::vector<float>(64 * 32, 0.0F));
}

TEST_F(ChangedCheckpoint, AModelWithoutQuantisedModulesIsNoted) {
  load("awq");
  std::erase_if(tensors_, [](const auto& tensor) { return tensor.first.find("_proj.") != std::string::npos; });
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                           "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
    const std::string module = name;
    const std::uint64_t rows = module == "mlp.gate_proj" || module == "mlp.up_proj" ? 64 : 32;
    const std::uint64_t columns = module == "mlp.down_proj" ? 64 : 32;
    tensors_["model.layers.0." + module + ".weight"] = {"F32", {rows, columns}, std::string(rows * columns * 4, '\0')};
  }
  EXPECT_THAT(open()->notes(), testing::Contains("no weight is quantised, in spite of the quantization_config"));
}

TEST_F(ChangedCheckpoint, GroupsApplyByNameThenExpressionThenClass) {
  load("pack_w4");
  const Json expected = test::projection_digests(*open());
  Json& groups = quantization()["config_groups"];
  Json other = groups["group_0"];
  other["weights"]["num_bits"] = 8;  // does not fit any module
  other["targets"] = {"Linear"};
  groups["group_1"] = other;
  groups["group_0"]["targets"] = {"re:.*proj$"};
  EXPECT_EQ(test::projection_digests(*open()), expected);
  groups["group_1"]["targets"] = {"re:.*proj$"};
  groups["group_0"]["targets"] = Json::array();
  for (const auto& [name, tensor] : tensors_)
    if (name.ends_with(".weight_packed")) groups["group_0"]["targets"].push_back(name.substr(0, name.rfind('.')));
  EXPECT_EQ(test::projection_digests(*open()), expected);
  groups["group_0"]["targets"] = {"re:proj$"};  // matches from the beginning on
  expect_refused(ErrorCode::kInput, "weight_shape: found 32 x 32 values, expected those of");
  groups["group_1"]["targets"] = {"re:.*mlp.*"};
  expect_refused(ErrorCode::kInput, "found quantised values of a module that no group of config_groups targets");
}

TEST_F(ChangedCheckpoint, ExpressionsAreChecked) {
  refuse("pack_w4", ErrorCode::kInput, "/quantization_config/ignore/0: found \"re:(\", expected a regular expression",
         [&] { quantization()["ignore"] = {"re:("}; });
  refuse("pack_w4", ErrorCode::kInput, "that \".*up_proj\" of ignore names",
         [&] { quantization()["ignore"] = {"re:.*up_proj"}; });
  refuse("pack_w4", ErrorCode::kInput, "takes too many steps",
         [&] { quantization()["ignore"] = {"re:(([a-z_.0-9]+)+)+[A-Z]"}; });
  refuse("modelopt_nvfp4", ErrorCode::kInput, "that \"model.layers.?.mlp*\" excludes",
         [&] { own_["quantization"]["exclude_modules"] = {"model.layers.?.mlp*"}; });
}

TEST_F(ChangedCheckpoint, UnknownSchemesAreRefusedByName) {
  const auto refuse_key = [&](const char* name, const char* key, const Json& value, const std::string& message) {
    refuse(name, ErrorCode::kUnsupported, "/quantization_config" + message, [&] { quantization()[key] = value; });
  };
  const auto refuse_weights = [&](const char* name, const char* key, const Json& value, const std::string& message) {
    refuse(name, ErrorCode::kUnsupported, "/quantization_config/config_groups/group_0" + message,
           [&] { weights()[key] = value; });
  };
  refuse_key("awq", "quant_method", "hqq", ": found quantised weights (hqq), supported are: fp8, compressed-tensors");
  refuse_key("awq", "version", "gemv", "/version: found \"gemv\", supported are: gemm");
  refuse_key("awq", "bits", 3, "/bits: found 3, supported are: 4");
  refuse_key("awq", "zero_point", false, "/zero_point: found weights without zero points");
  refuse_key("gptq_w4", "bits", 5, "/bits: found 5, supported are: 2, 3, 4, 8");
  refuse_key("gptq_w4", "checkpoint_format", "marlin", "/checkpoint_format: found \"marlin\"");
  refuse_key("gptq_w4", "dynamic", {{"+:.*", {{"bits", 8}}}}, "/dynamic");
  refuse_key("modelopt_mixed", "quant_algo", "INT4_AWQ", "/quant_algo: found \"INT4_AWQ\"");
  refuse_key("bnb_fp4", "bnb_4bit_quant_storage", "bfloat16", "/bnb_4bit_quant_storage");
  refuse_key("pack_w4", "format", "marlin-24", "/config_groups/group_0: found format marlin-24, supported are: ");
  refuse_key("pack_w4", "sparsity_config", {{"format", "sparse-24-bitmask"}}, "/sparsity_config/format");
  refuse_key("pack_w4", "transform_config", {{"config_groups", {{"a", 1}}}}, "/transform_config/config_groups");
  refuse_weights("pack_w4", "num_bits", 9, "/weights: found 9 bits with pack-quantized, supported are: 1 to 8");
  refuse_weights("pack_w4", "type", "float", "/weights: found weights of type float, which pack-quantized does not");
  refuse_weights("pack_w4", "strategy", "token", "/weights: found strategy token, supported are: tensor, channel");
  refuse_weights("nvfp4", "group_size", 32, "/weights: found another strategy, supported with nvfp4-pack-quantized");
  refuse_weights("mxfp4", "symmetric", false, "/weights: found zero points of weights that are not integers");
  refuse_weights("int_channel_zeros", "actorder", "group", "/weights: found reordered columns");
}

TEST_F(ChangedCheckpoint, AlgorithmsOfModulesThatAreNotReadDoNotMatter) {
  load("modelopt_mixed");
  Json& layers = quantization()["quantized_layers"];
  layers["mtp.layers.0.mlp.experts"] = {{"quant_algo", "FP8_PB_WO"}, {"group_size", 128}};
  EXPECT_NO_THROW(open());
  layers["model.layers.0.mlp.up_proj"] = {{"quant_algo", "fp8_pb_wo"}};
  expect_refused(ErrorCode::kUnsupported, "up_proj.weight: found quant_algo FP8_PB_WO, supported are: FP8, ");
}

TEST_F(ChangedCheckpoint, PartsThatAreMissingAreNamed) {
  for (const auto& [name, part] : std::map<std::string, std::string>{{"float_channel", "weight_scale"},
                                                                     {"int_channel_zeros", "weight_zero_point"},
                                                                     {"pack_w4", "weight_shape"},
                                                                     {"pack_w4_order", "weight_g_idx"},
                                                                     {"nvfp4", "weight_global_scale"},
                                                                     {"modelopt_nvfp4", "weight_scale_2"},
                                                                     {"awq", "qzeros"},
                                                                     {"gptq_w4_order", "g_idx"},
                                                                     {"gptq_w4", "scales"},
                                                                     {"bnb_nf4_nested", "weight.nested_quant_map"},
                                                                     {"bnb_int8", "SCB"}})
    refuse(name, ErrorCode::kInput, "found no " + kUp + part, [&, &part = part] { tensors_.erase(kUp + part); });
}

TEST_F(ChangedCheckpoint, PartsOfAnotherTypeAreRefused) {
  const auto retype = [&](const char* name, const std::string& part, const char* type, ErrorCode code,
                          const std::string& message) {
    refuse(name, code, kUp + part + ": found " + message, [&] { up(part).type = type; });
  };
  retype("float_channel", "weight", "I8", ErrorCode::kInput, "type I8, expected F8_E4M3");
  retype("pack_w4", "weight_packed", "F32", ErrorCode::kInput, "type F32, expected I32");
  retype("pack_w4", "weight_scale", "I16", ErrorCode::kUnsupported, "type I16, supported are: F32, F16, BF16, F64");
  retype("nvfp4", "weight_scale", "U8", ErrorCode::kUnsupported, "type U8, supported are: F8_E4M3");
  retype("int_channel_zeros", "weight_zero_point", "U8", ErrorCode::kInput, "type U8, expected I8");
  retype("awq", "scales", "I16", ErrorCode::kInput, "type I16, expected F32 or F16 or BF16 or F64");
  retype("gptq_w4", "qzeros", "F32", ErrorCode::kInput, "type F32, expected I32");
  retype("gptq_w4", "g_idx", "F32", ErrorCode::kInput, "type F32, expected I32");
  retype("bnb_fp4", "weight.quant_map", "I32", ErrorCode::kInput, "type I32, expected F32");
  retype("bnb_int8", "weight", "U8", ErrorCode::kInput, "type U8, expected I8");
}

TEST_F(ChangedCheckpoint, PartsOfAnotherShapeAreRefused) {
  const auto cut_part = [&](const char* name, const std::string& part, const std::string& message) {
    refuse(name, ErrorCode::kInput, kUp + part + ": found " + message, [&] { cut(up(part), up(part).shape[0] - 1); });
  };
  cut_part("float_channel", "weight_scale", "shape [63, 1], expected [64, 1]");
  cut_part("float_block", "weight_scale", "shape [2, 2], expected [3, 2]");
  cut_part("int_group_zeros", "weight_zero_point", "shape [63, 4], expected [64, 4]");
  cut_part("pack_w3_zeros", "weight_zero_point", "shape [5, 2], expected [6, 2]");
  cut_part("pack_w4", "weight_shape", "shape [1], expected [2]");
  cut_part("pack_w4_order", "weight_g_idx", "shape [31], expected [32]");
  cut_part("nvfp4", "weight_scale", "shape [63, 2], expected [64, 2]");
  cut_part("awq", "scales", "shape [1, 64], expected [2, 64]");
  cut_part("awq", "qzeros", "shape [1, 8], expected [2, 8]");
  cut_part("gptq_w4", "g_idx", "shape [31], expected [32]");
  cut_part("gptq_w3", "qweight", "2 words, expected a whole number of codes of 3 bits");
  cut_part("bnb_fp4", "weight.absmax", "shape [31], expected [32]");
  cut_part("bnb_fp4", "weight", "1023 bytes, expected 1024 for 2048 values");
  cut_part("bnb_int8", "SCB", "shape [63], expected [64]");
  // The matrix itself, against the config.
  refuse("awq", ErrorCode::kInput, "up_proj.qweight: found shape [64, 16], expected [64, 32] (intermediate_size", [&] {
    cut(up("qweight"), 16);
    cut(up("qzeros"), 1);
    cut(up("scales"), 1);
  });
}

TEST_F(ChangedCheckpoint, ValuesThatDoNotFitAreRefused) {
  refuse("pack_w4", ErrorCode::kInput, "weight_shape: found 64 x 18446744073709551615 values, expected those of",
         [&] { up("weight_shape").bytes.replace(8, 8, std::string(8, '\xff')); });
  refuse("gptq_w4_order", ErrorCode::kInput, "g_idx: found group 2, expected 0 to 1",
         [&] { up("g_idx").bytes[4] = 2; });
  refuse("gptq_w4_order", ErrorCode::kInput, "g_idx: found negative groups",
         [&] { up("g_idx").bytes.replace(0, 4, std::string(4, '\xff')); });
  refuse("bnb_nf4_nested", ErrorCode::kInput, "bitsandbytes__nf4",
         [&] { up("weight.quant_state.bitsandbytes__nf4").bytes[0] = '['; });
  refuse("pack_w4", ErrorCode::kInput, "found 32 columns, expected a multiple of the group_size 12",
         [&] { weights()["group_size"] = 12; });
  refuse("modelopt_nvfp4", ErrorCode::kUnsupported, "found a pre_quant_scale of this module", [&] {
    tensors_[kUp + "pre_quant_scale"] = {"F32", {1}, std::string(4, '\0')};
  });
}

TEST_F(ChangedCheckpoint, ScalesThatAreNotFiniteAreFoundWithTheirPlace) {
  load("gptq_w4");
  up("scales").bytes.replace(0, 2, std::string("\0\x7e", 2));
  const auto source = open();
  std::vector<float> values(64 * 32);
  test::expect_error(ErrorCode::kData,
                     "up_proj.qweight: found 16 values that are NaN, infinite or beyond f32, the "
                     "first at flat index 0",
                     [&] { source->tensors().rows(TensorRole::kUp).read(0, 64, values); });
}

}  // namespace
}  // namespace kvs
