// SPDX-License-Identifier: Apache-2.0
#include "io/input_files.h"

#include <gtest/gtest.h>

#include "tests/io/temporary_directory.h"

namespace kvs::test {
namespace {

TEST(InputFiles, SparesAnInputUnderAnyName) {  // catalogue item 111
  const TemporaryDirectory directory;
  const fs::path input = directory.write("text", "x");
  fs::create_hard_link(input, directory / "hard");
  fs::create_symlink("text", directory / "soft");
  InputFiles inputs;
  inputs.add(directory / "none");
  inputs.add(input);
  for (const char* name : {"text", "hard", "soft", "./text"})
    expect_error(ErrorCode::kUsage, "the output is the input", [&] { inputs.check_spared(directory / name); });
  EXPECT_NO_THROW(inputs.check_spared(directory / "none"));
  EXPECT_NO_THROW(inputs.check_spared(directory.write("other", "x")));
}

TEST(InputFiles, SparesTheFilesOfAFolderOfTexts) {
  const TemporaryDirectory directory;
  fs::create_directory(directory / "texts");
  directory.write("texts/a.txt", "x");
  InputFiles inputs;
  inputs.add(directory / "texts");
  expect_error(ErrorCode::kUsage, "texts/a.txt", [&] { inputs.check_spared(directory / "texts/a.txt"); });
  EXPECT_NO_THROW(inputs.check_spared(directory / "texts/config.json"));
}

TEST(InputFiles, LeavesNoRoomAmongTextsButBelowThem) {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "texts/below");
  fs::create_symlink("texts", directory / "alias");
  InputFiles inputs;
  inputs.add_texts(directory.write("file", "x"));
  inputs.add_texts(directory / "texts");
  for (const char* name : {"texts/new.json", "alias/new.json", "texts/below/../new.json"})
    expect_error(ErrorCode::kUsage, "folder of texts", [&] { inputs.check_spared(directory / name); });
  expect_error(ErrorCode::kUsage, "the output is the input", [&] { inputs.check_spared(directory / "file"); });
  for (const char* name : {"texts/below/new.json", "new.json"}) EXPECT_NO_THROW(inputs.check_spared(directory / name));
}

TEST(InputFiles, LeavesNoRoomInAModelsFolderAndSparesWhatItsLinksLeadTo) {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "model/more");
  directory.write("blob", "x");
  fs::create_symlink("../blob", directory / "model/model.safetensors");
  fs::create_symlink("model", directory / "alias");
  fs::create_symlink("model/new.json", directory / "hidden");
  InputFiles inputs;
  inputs.add_model(directory / "alias");
  expect_error(ErrorCode::kUsage, "the output is the input", [&] { inputs.check_spared(directory / "blob"); });
  for (const char* name : {"model/new.json", "model/more/new.json", "model/new/spectrum.json", "hidden", "alias/x"})
    expect_error(ErrorCode::kUsage, "folder of the model", [&] { inputs.check_spared(directory / name); });
  EXPECT_NO_THROW(inputs.check_spared(directory / "new.json"));
}

TEST(InputFiles, SparesEveryPartOfASplitGgufAndNothingElseBesideIt) {
  const TemporaryDirectory directory;
  for (const char* name : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "n-00002-of-00002.gguf", "x.json"})
    directory.write(name, "x");
  InputFiles inputs;
  inputs.add_model(directory / "m-00001-of-00002.gguf");
  for (const char* name : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"})
    expect_error(ErrorCode::kUsage, "the output is the input", [&] { inputs.check_spared(directory / name); });
  for (const char* name : {"n-00002-of-00002.gguf", "x.json", "new.json"})
    EXPECT_NO_THROW(inputs.check_spared(directory / name));
}

TEST(InputFiles, SparesAFolderThatHoldsAnInput) {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "out" / "deep");
  InputFiles inputs;
  inputs.add(directory.write("out/deep/config.json", "{}"));
  expect_error(ErrorCode::kUsage, "holds the input", [&] { inputs.check_spared(directory / "out"); });
  fs::create_directory(directory / "free");
  EXPECT_NO_THROW(inputs.check_spared(directory / "free"));
  fs::create_directory(directory / "out2");
  EXPECT_NO_THROW(inputs.check_spared(directory / "out2")) << "its name begins alike";
  directory.write("out2/config.json", "{}");
  fs::create_symlink(directory / "out2/config.json", directory / "link");
  inputs.add(directory / "link");
  expect_error(ErrorCode::kUsage, "holds the input", [&] { inputs.check_spared(directory / "out2"); });
}

}  // namespace
}  // namespace kvs::test
