// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "io/gguf_writer.h"
#include "model/model.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void expect_refusal(ErrorCode code, const testing::Matcher<std::string>& message, const std::filesystem::path& path) {
  try {
    ModelSource::open(path);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(std::string(error.what()), message);
  }
}

constexpr const char* kConfig =
    R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "vocab_size": 16, "rms_norm_eps": 1e-6})";

struct ForeignFiles {
  const char* name;
  std::vector<const char*> files;
  const char* culprit;
  const char* what;
};

class ForeignFolder : public testing::TestWithParam<ForeignFiles> {};

TEST_P(ForeignFolder, IsNamedWithAndWithoutAConfig) {
  for (const bool with_config : {false, true}) {
    const test::TemporaryDirectory folder;
    if (with_config) folder.write("config.json", kConfig);
    for (const char* file : GetParam().files) {
      std::filesystem::create_directories((folder / file).parent_path());
      folder.write(file, "x");
    }
    expect_refusal(ErrorCode::kUnsupported,
                   AllOf(HasSubstr((folder / GetParam().culprit).string()), HasSubstr(GetParam().what)), folder.path());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ForeignFolder,
    testing::Values(
        ForeignFiles{
            "Adapter", {"adapter_model.safetensors", "adapter_config.json"}, "adapter_config.json", "an adapter (LoRA"},
        ForeignFiles{"AdapterPickle", {"adapter_model.bin"}, "adapter_model.bin", "an adapter (LoRA"},
        ForeignFiles{"Meta",
                     {"params.json", "consolidated.00.pth", "tokenizer.model"},
                     "consolidated.00.pth",
                     "Meta's own checkpoint, a pickle"},
        ForeignFiles{"Mistral",
                     {"params.json", "consolidated.safetensors"},
                     "consolidated.safetensors",
                     "Mistral's own checkpoint"},
        ForeignFiles{"Pickle", {"pytorch_model.bin"}, "pytorch_model.bin", "a pickle"},
        ForeignFiles{"PickleShards",
                     {"pytorch_model-00002-of-00002.bin", "pytorch_model-00001-of-00002.bin"},
                     "pytorch_model-00001-of-00002.bin",
                     "a pickle"},
        ForeignFiles{"Onnx", {"model.onnx", "model.onnx_data"}, "model.onnx", "an ONNX graph"},
        ForeignFiles{"OnnxFolder", {"onnx"}, "onnx", "an ONNX graph"},
        ForeignFiles{"OpenVino", {"openvino_model.bin", "openvino_model.xml"}, "openvino_model.xml", "OpenVINO"},
        ForeignFiles{"TensorFlow", {"tf_model.h5"}, "tf_model.h5", "TensorFlow"},
        ForeignFiles{"TensorFlowCheckpoint", {"m.ckpt.index", "m.ckpt.data-0"}, "m.ckpt.index", "TensorFlow"},
        ForeignFiles{"PickleIndex", {"pytorch_model.bin.index.json"}, "pytorch_model.bin.index.json", "pickles"},
        ForeignFiles{"Ggml", {"ggml-model-q4_0.bin"}, "ggml-model-q4_0.bin", "GGUF replaced"},
        ForeignFiles{"MetaBelow", {"original/consolidated.00.pth"}, "original/consolidated.00.pth", "Meta's"},
        ForeignFiles{"AdapterBelow", {"style/adapter_config.json"}, "style/adapter_config.json", "an adapter"},
        ForeignFiles{"Megatron", {"iter_1/mp_rank_00/model.pt"}, "iter_1/mp_rank_00/model.pt", "a pickle"},
        ForeignFiles{"Distributed", {"model_0/__0_0.distcp"}, "model_0/__0_0.distcp", "distributed checkpoint"}),
    [](const auto& files) { return std::string(files.param.name); });

TEST(ForeignFile, IsNamedWhenItIsGivenItself) {
  const test::TemporaryDirectory folder;
  for (const auto& [file, what] : {std::pair{"adapter_model.safetensors", "an adapter (LoRA"},
                                   std::pair{"consolidated.00.pth", "Meta's own checkpoint"},
                                   std::pair{"model.onnx", "an ONNX graph"}, std::pair{"model.bin", "a pickle"}}) {
    expect_refusal(ErrorCode::kUnsupported, HasSubstr(what), folder.write(file, "x"));
  }
}

TEST(ForeignFile, ItsFirstBytesSayMoreThanItsName) {
  const test::TemporaryDirectory folder;
  for (const auto& [file, bytes, what] :
       {std::tuple{"m.bin", "tjgg1234", "GGUF replaced"}, std::tuple{"m", "PK\x03\x04zip", "a zip or a pickle"},
        std::tuple{"p", "\x80\x04pickle", "a zip or a pickle"},
        std::tuple{"consolidated.00.pth", "PK\x03\x04zip", "Meta's own checkpoint"}}) {
    expect_refusal(ErrorCode::kUnsupported, HasSubstr(what), folder.write(file, bytes));
  }
  expect_refusal(ErrorCode::kInput, HasSubstr("the folder with it"), folder.write("config.json", "{}"));
}

TEST(ForeignFile, AModelBelowIsNotWhatTheFolderAboveHolds) {
  const test::TemporaryDirectory folder;
  std::filesystem::create_directories(folder / "other");
  folder.write("other/pytorch_model.bin", "x");
  folder.write("other/config.json", kConfig);
  expect_refusal(ErrorCode::kInput, HasSubstr("config.json: is missing"), folder.path());
}

TEST(ForeignFile, SafetensorsOfAnotherNameAreNamed) {
  const test::TemporaryDirectory folder;
  folder.write("config.json", kConfig);
  folder.write("gptq_model-4bit-128g.safetensors", "x");
  expect_refusal(ErrorCode::kInput, AllOf(HasSubstr("gptq_model-4bit-128g"), HasSubstr("by the names")), folder.path());
}

TEST(ForeignFile, AFolderOfGgufFilesIsAskedForTheFile) {
  const test::TemporaryDirectory folder;
  folder.write("tiny.gguf", "GGUF");
  expect_refusal(ErrorCode::kInput, AllOf(HasSubstr("tiny.gguf"), HasSubstr("that file itself")), folder.path());
}

TEST(ForeignFile, WeightsOfTheRightKindHideTheOthers) {
  const test::TemporaryDirectory folder;
  folder.write("config.json", kConfig);
  folder.write("model.safetensors", "cut");
  folder.write("pytorch_model.bin", "x");
  folder.write("model.onnx", "x");
  expect_refusal(ErrorCode::kInput, HasSubstr("model.safetensors"), folder.path());
}

std::filesystem::path write_gguf_of(const test::TemporaryDirectory& folder,
                                    std::initializer_list<std::pair<const char*, const char*>> metadata) {
  GgufMetadataWriter writer;
  for (const auto& [key, value] : metadata) writer.add(key, value);
  std::filesystem::path file = folder.write("m.gguf", "");
  const std::vector<float> values(32);
  write_gguf(file, writer, std::vector<OutputTensor>{held_tensor("a", {32}, values)});
  return file;
}

TEST(ForeignGguf, AdaptersAndOtherCompanionsOfModelsAreNamed) {
  const test::TemporaryDirectory folder;
  expect_refusal(
      ErrorCode::kUnsupported, AllOf(HasSubstr("general.type"), HasSubstr("\"adapter\" (lora)"), HasSubstr("merge")),
      write_gguf_of(folder,
                    {{"general.type", "adapter"}, {"general.architecture", "llama"}, {"adapter.type", "lora"}}));
  expect_refusal(ErrorCode::kUnsupported, HasSubstr("\"adapter\" (lora)"),
                 write_gguf_of(folder, {{"general.architecture", "llama"}, {"adapter.type", "lora"}}));
  expect_refusal(ErrorCode::kUnsupported, HasSubstr("\"mmproj\""),
                 write_gguf_of(folder, {{"general.type", "mmproj"}, {"general.architecture", "clip"}}));
  // If a file says that it is a model, its other keys are read, too.
  expect_refusal(ErrorCode::kInput, HasSubstr("llama.block_count"),
                 write_gguf_of(folder, {{"general.type", "model"}, {"general.architecture", "llama"}}));
}

}  // namespace
}  // namespace kvs
