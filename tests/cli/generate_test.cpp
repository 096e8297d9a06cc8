// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "tests/cli/text_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using GenerateProgram = TextPrograms;

TEST_F(GenerateProgram, NeedsATokenizerAndAPrompt) {
  std::filesystem::remove(folder_ / "model/tokenizer.json");
  const Outcome none = run("kvcalibrate", {"generate", "--model", folder_ / "model", "--prompt", "x"});
  EXPECT_EQ(none.status, 3);
  EXPECT_THAT(none.err, HasSubstr("tokenizer"));
  EXPECT_EQ(run("kvcalibrate", {"generate", "--model", folder_ / "model"}).status, 2);
}

TEST_F(GenerateProgram, ContinuesAPromptOfTheRealModel) {
  const char* model = std::getenv("KVS_MODEL");
  if (model == nullptr) GTEST_SKIP() << "set KVS_MODEL to the path that scripts/fetch_model.sh prints";
  const std::vector<std::string> words{"generate",         "--model", model,    "--prompt", "The capital of France is",
                                       "--max-new-tokens", "24",      "--quiet"};
  const Outcome full = run("kvcalibrate", words);
  EXPECT_EQ(full.status, 0) << full.err;
  EXPECT_THAT(full.out, HasSubstr("Paris"));
  auto compressed = words;
  compressed.insert(compressed.end(), {"--method", "freqkv", "--set", "cache_size=12", "--json"});
  const Outcome freqkv = run("kvcalibrate", compressed);
  EXPECT_EQ(freqkv.status, 0) << freqkv.err;
  const Json result = parse_json(freqkv.out, "stdout");
  EXPECT_EQ(result.at("ids").size(), 24U);
  EXPECT_GT(result.at("compressions").get<int>(), 3);
}

TEST_F(GenerateProgram, TakesIdsThatAreNoTokensForNoText) {
  Json tokenizer = letters_tokenizer();
  tokenizer["model"]["vocab"] = Json{{"#", 0}, {"a", 1}};  // of the model's 64
  std::ofstream(folder_ / "model/tokenizer.json") << dump_json(tokenizer);
  const Outcome made = run("kvcalibrate", {"generate", "--model", folder_ / "model", "--prompt", "a", "--json"});
  ASSERT_EQ(made.status, 0) << made.err;
  const Json result = parse_json(made.out, "stdout");
  EXPECT_EQ(result.at("ids").size(), 64U);
  EXPECT_LT(result.at("text").get<std::string>().size(), 64U);
}

TEST_F(GenerateProgram, EscapesControlCharactersOnATerminalAlone) {
  Json tokenizer = letters_tokenizer();
  Json& vocabulary = tokenizer["model"]["vocab"] = Json{{"#", 0}, {"a", 1}};
  for (int id = 2; id < 64; ++id) vocabulary["\u011b" + std::string(static_cast<std::size_t>(id), '[')] = id;  // ESC [[
  std::ofstream(folder_ / "model/tokenizer.json") << dump_json(tokenizer);
  const std::string model = folder_ / "model";
  const Outcome piped =
      run("kvcalibrate", {"generate", "--model", model, "--prompt", "a", "--max-new-tokens", "8", "--quiet"});
  ASSERT_EQ(piped.status, 0) << piped.err;
  EXPECT_THAT(piped.out, HasSubstr("\x1b[["));
  const std::string command =
      std::string(KVS_BINARY_DIR) + "/kvcalibrate generate --model " + model + " --prompt a --max-new-tokens 8 --quiet";
  const Outcome shown = run("/usr/bin/script", {"--quiet", "--return", "--command", command, "/dev/null"});
  ASSERT_EQ(shown.status, 0) << shown.out;
  EXPECT_THAT(shown.out, HasSubstr("\\x1b[["));
  EXPECT_THAT(shown.out, Not(HasSubstr("\x1b[[")));
}

}  // namespace
}  // namespace kvs::testing
