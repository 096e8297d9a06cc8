// SPDX-License-Identifier: Apache-2.0
// Safetensors files: N1 to N21.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/catalogue/catalogue.h"
#include "tests/catalogue/tensor_file.h"

namespace kvs::testing {
namespace {

constexpr const char* kWeights = "model/model.safetensors";
constexpr const char* kKeyTensor = "model.layers.1.self_attn.k_proj.weight";
constexpr const char* kEmbeddingTensor = "model.embed_tokens.weight";

/// A change of the header's text.
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  return text.replace(text.find(from), from.size(), to);
}

/// The file with another text as a member of kKeyTensor.
std::string with_member(TensorFile file, const char* member, std::string_view text) {
  file.header[kKeyTensor][member] = "HERE";
  return file.with(replaced(file.header.dump(), "\"HERE\"", text));
}

TEST_F(Catalogue, N1_FewerThanEightBytes) {
  write(kWeights, "");
  expect_model_refused(3, {kWeights, "the file is empty"});
  write(kWeights, "1234567");
  expect_model_refused(3, {kWeights, "byte 0", "found 7 bytes, need 8"});
}

TEST_F(Catalogue, N2_HeaderLengthAboveTheLimit) {
  for (const char* length : {"9223372036854775808", "100000001"}) {
    write(kWeights, little_endian(std::stoull(length)) + "{}");
    expect_model_refused(3, {kWeights, "byte 0", length, "at most 100000000"});
  }
}

TEST_F(Catalogue, N3_HeaderLongerThanTheFile) {
  write(kWeights, little_endian(1000) + std::string(112, ' '));
  expect_model_refused(3, {kWeights, "byte 0", "1000", "112 bytes follow"});
}

TEST_F(Catalogue, N4_HeaderIsNoObject) {
  for (const char* header : {"", "[]", "\"x\"", "{"}) {
    write(kWeights, little_endian(std::string_view(header).size()) + header);
    expect_model_refused(3, {kWeights, "byte 8"});
    write_tiny_model(folder_ / "model");
  }
}

TEST_F(Catalogue, N5_HeaderThatIsNotUtf8) {
  write(kWeights, little_endian(7) + "{\"\xff\":1}");
  expect_model_refused(3, {kWeights, "byte 10", "UTF-8"});
}

TEST_F(Catalogue, N6_ByteOrderMarkOrNulPadding) {
  const TensorFile file(folder_ / kWeights);
  write(kWeights, file.with("\xef\xbb\xbf" + file.header.dump()));
  expect_model_refused(3, {kWeights, "byte order mark"});
  write(kWeights, file.with(file.header.dump() + std::string(2, '\0')));
  expect_model_refused(3, {kWeights, "NUL byte"});
}

TEST_F(Catalogue, N7_BlanksAroundTheHeaderAreFine) {
  const TensorFile file(folder_ / kWeights);
  write(kWeights, file.with(" \t\r\n" + file.header.dump() + "\n\t  \r"));
  expect_model_taken();
}

TEST_F(Catalogue, N8_OffsetsThatAreNoRange) {
  const TensorFile sound(folder_ / kWeights);
  for (const char* offsets : {"[4,0]", "[-4,0]", "[0,4.0]", "[0,2,4]", "[0,18446744073709551616]", "7"}) {
    write(kWeights, with_member(sound, "data_offsets", offsets));
    expect_model_refused(3, {kWeights, kKeyTensor, "data_offsets"});
  }
}

TEST_F(Catalogue, N9_TensorsThatOverlap) {
  TensorFile file(folder_ / kWeights);
  file.header["twin"] = file.header[kKeyTensor];
  write(kWeights, file.bytes());
  expect_model_refused(3, {kWeights, kKeyTensor, "\"twin\"", "overlaps"});
  std::string header = "{";
  for (int n = 0; n < 100000; ++n)
    header += (n > 0 ? ",\"" : "\"") + std::to_string(n) + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  write(kWeights, file.with(header + "}"));
  expect_model_refused(3, {kWeights, "overlaps"});
}

TEST_F(Catalogue, N10_BytesThatBelongToNoTensor) {
  TensorFile file(folder_ / kWeights);
  const std::size_t size = file.data.size();
  file.data += "PK";
  write(kWeights, file.bytes());
  expect_model_refused(3, {kWeights, "belong to no tensor"});
  file.data.resize(size);
  file.header.erase(kKeyTensor);
  write(kWeights, file.bytes());
  expect_model_refused(3, {kWeights, "belong to no tensor"});
}

TEST_F(Catalogue, N11_DataCutShort) {
  const std::string whole = slurp(folder_ / kWeights);
  for (const std::size_t size : {whole.size() - 1, whole.size() / 2}) {
    write(kWeights, whole.substr(0, size));
    expect_model_refused(3, {kWeights, "tensor \"model.", "ends at byte", "of a file of " + std::to_string(size)});
  }
}

TEST_F(Catalogue, N12_SizesThatOverflow) {
  const TensorFile sound(folder_ / kWeights);
  for (const char* shape : {"[2,18446744073709551614]", "[2,9223372036854775807]"}) {
    write(kWeights, with_member(sound, "shape", shape));
    expect_model_refused(3, {kWeights, kKeyTensor, "overflow"});
  }
}

TEST_F(Catalogue, N13_ShapeAndSpanDiffer) {
  TensorFile file(folder_ / kWeights);
  file.header[kKeyTensor]["shape"] = {15, 48};
  write(kWeights, file.bytes());
  expect_model_refused(3, {kWeights, kKeyTensor, "need 2880 bytes", "give 3072"});
}

TEST_F(Catalogue, N14_DuplicateNames) {
  const TensorFile file(folder_ / kWeights);
  const std::string header = file.header.dump(), empty = R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  for (const char* name : {"model.norm.weight", "\\u006dodel.norm.weight"}) {
    write(kWeights, file.with(header.substr(0, header.size() - 1) + ",\"" + name + empty + "}"));
    expect_model_refused(3, {kWeights, "duplicate key \"model.norm.weight\""});
  }
}

TEST_F(Catalogue, N15_TypesUnknownOrNotHandled) {
  TensorFile file(folder_ / kWeights);
  for (const char* type : {"f32", "F33"}) {
    file.header[kKeyTensor]["dtype"] = type;
    write(kWeights, file.bytes());
    expect_model_refused(3, {kWeights, kKeyTensor, "unknown dtype", type});
  }
  const std::size_t begin = file.header[kKeyTensor]["data_offsets"][0], values = std::size_t{16} * 48;
  for (const auto& [type, bits] : {std::pair{"F8_E4M3", 8U}, std::pair{"F4", 4U}, std::pair{"U32", 32U}}) {
    const std::size_t bytes = values * bits / 8, rest = values * 4 - bytes;
    file.header[kKeyTensor] = {{"dtype", type}, {"shape", {16, 48}}, {"data_offsets", {begin, begin + bytes}}};
    file.header["rest"] = {{"dtype", "U8"}, {"shape", {rest}}, {"data_offsets", {begin + bytes, begin + bytes + rest}}};
    write(kWeights, file.bytes());
    expect_model_refused(4, {kWeights, kKeyTensor, type});
  }
}

TEST_F(Catalogue, N15_ATypeThatIsNotNeededIsFine) {
  TensorFile file(folder_ / kWeights);
  const std::size_t end = file.data.size();
  file.header["scale"] = {{"dtype", "F8_E4M3"}, {"shape", {3}}, {"data_offsets", {end, end + 3}}};
  file.data += "abc";
  write(kWeights, file.bytes());
  expect_model_taken();
}

TEST_F(Catalogue, N16_MetadataThatIsNoObjectOfStrings) {
  for (const Json& metadata : {Json(1), Json::array(), Json{{"a", 1}}, Json{{"a", nullptr}}}) {
    TensorFile file(folder_ / kWeights);
    file.header["__metadata__"] = metadata;
    write(kWeights, file.bytes());
    expect_model_refused(3, {kWeights, "__metadata__"});
  }
}

TEST_F(Catalogue, N17_NamesAreKeysAndNeverPaths) {
  const TensorFile sound(folder_ / kWeights);
  for (const std::string& name : {std::string("../../x\x1b[2J\n"), std::string(10'000'000, 'n')}) {
    TensorFile file = sound;
    const std::size_t end = file.data.size();
    file.header[name] = {{"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {end, end + 4}}};
    write(kWeights, file.bytes());
    expect_model_refused(3, {kWeights, name.substr(0, 7), "ends at byte"});
    file.data += std::string(4, '\0');
    write(kWeights, file.bytes());
    expect_model_taken();
    write("out/earlier", "made before");
  }
}

TEST_F(Catalogue, N18_ANeededTensorIsAbsent) {
  edit_json("model/config.json", [](Json& config) { config["num_hidden_layers"] = 6; });
  expect_model_refused(3, {"model.safetensors", "18 tensors are missing", "model.layers.4.input_layernorm.weight"});
}

TEST_F(Catalogue, N19_RowsThatTheConfigContradicts) {
  edit_json("model/config.json", [](Json& config) { config["num_key_value_heads"] = 3; });
  expect_model_refused(3, {"k_proj.weight", "[16, 48]", "[24, 48]", "num_key_value_heads 3", "head size 8"});
}

TEST_F(Catalogue, N20_DataAtAnOddOffsetAreFine) {
  const TensorFile file(folder_ / kWeights);
  std::string header = file.header.dump();
  if (header.size() % 2 == 0) header += ' ';
  write(kWeights, file.with(header));
  expect_model_taken();
}

TEST_F(Catalogue, N21_NumbersThatAreNotFinite) {
  for (const float value : {std::nanf(""), -HUGE_VALF}) {
    TensorFile file(folder_ / kWeights);
    const std::size_t begin = file.header[kEmbeddingTensor]["data_offsets"][0];
    for (const std::size_t at : {100U, 200U}) std::memcpy(&file.data[begin + 4 * at], &value, sizeof value);
    write(kWeights, file.bytes());
    expect_model_refused(5, {kWeights, kEmbeddingTensor, "found 2 values", "flat index 100"});
    write_tiny_model(folder_ / "model");
  }
}

}  // namespace
}  // namespace kvs::testing
