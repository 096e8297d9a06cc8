// SPDX-License-Identifier: Apache-2.0
// Configs that version 0.1.2 wrote (golden/make_configs_0_1.py) are valid today and are the same caches.
#include <gmock/gmock.h>

#include <set>

#include "io/json.h"
#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

std::filesystem::path golden(const std::string& name) { return std::filesystem::path(KVS_GOLDEN_DIR) / name; }
std::filesystem::path config(const std::string& name) { return golden("configs_0_1/" + name + ".json"); }

Json read(const std::filesystem::path& path) { return parse_json(slurp(path), path.string()); }

/// The names of the golden configs.
std::vector<std::string> old_configs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden("configs_0_1")))
    if (entry.path().extension() == ".json" && entry.path().stem() != "nll") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

class OldConfigs : public ::testing::TestWithParam<std::string> {
 protected:
  std::string path() const { return config(GetParam()); }
};

TEST_P(OldConfigs, AreValid) {
  const Outcome outcome = run("kvcalibrate", {"validate", path()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  if (read(path()).at("parameters").contains("store_k")) {
    EXPECT_THAT(outcome.err, ::testing::HasSubstr("note: " + path() + ": store_k is now type_k"));
  }
}

TEST_P(OldConfigs, AreTheCachesThatTheyWere) {
  const Json losses = read(config("nll"));
  if (!losses.contains(GetParam())) GTEST_SKIP() << "a config for export alone";
  std::vector<std::string> how{"--config", path(), "--reference", "none", "--json"};
  if (GetParam() == "faedkv_ablation") how.insert(how.end(), {"--set", "prefix=20"});  // it says none
  const Outcome outcome =
      run("kvcalibrate", words_on_texts("eval", golden("tiny_llama_gqa"), golden("configs_0_1/tokens.jsonl"), how));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const double was = losses.at(GetParam()).get<double>(),
               is = parse_json(outcome.out, "eval").at("nll_mean").get<double>();
  EXPECT_NEAR(is, was, 1e-5 * was);  // processors differ by less than 1e-7, configs by more than 5e-5
}

std::string name_of(const ::testing::TestParamInfo<std::string>& name) { return name.param; }
INSTANTIATE_TEST_SUITE_P(, OldConfigs, ::testing::ValuesIn(old_configs()), name_of);

TEST(OldConfigsOfEveryMethod, AreThere) {
  std::set<std::string> methods;
  for (const std::string& name : old_configs()) methods.insert(read(config(name)).at("method"));
  EXPECT_EQ(methods, (std::set<std::string>{"full", "streaming", "dropping", "freqkv", "faedkv", "lagkv", "h2o",
                                            "snapkv", "l2norm", "kivi", "gqa", "elitekv", "transform"}));
}

}  // namespace
}  // namespace kvs::testing
