// SPDX-License-Identifier: Apache-2.0
// Slots of llama.cpp as a user packs and restores them.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/cli/calibrate_fixture.h"
#include "tests/slots/state.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kTokens = 60;

class SlotsProgram : public CalibratePrograms {
 protected:
  void calibrate(std::vector<std::string> form) const {
    form.insert(form.end(),
                {"--budget", "40%", "--sinks", "1", "--recent", "4", "--out", folder_ / "c.json", "--force"});
    const Outcome made = run("kvcalibrate", with_text("transform", form));
    ASSERT_EQ(made.status, 0) << made.err;
    const Json model = config("c.json").at("model");
    const std::size_t values = model.at("kv_heads").get<std::size_t>() * model.at("head_dim").get<std::size_t>();
    write_state_of(model.at("layers"), values);
  }
  void write_state_of(std::size_t layers, std::size_t values) const {
    std::filesystem::remove(folder_ / "slot.bin");
    write_state(folder_ / "slot.bin", test::random_state(kTokens, layers, values).state);
  }
  Outcome slots(const std::string& action, const std::string& slot, const std::string& out,
                const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{
        "slots",  action,         "--config", folder_ / "c.json", "--model", folder_ / "model",
        "--slot", folder_ / slot, "--out",    folder_ / out};
    words.insert(words.end(), more.begin(), more.end());
    return run("kvcalibrate", words);
  }
  void expect_refused(const Outcome& outcome, int status, const std::string& message) const {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
};

TEST_F(SlotsProgram, PacksAndRestores) {
  for (const std::vector<std::string>& form : std::vector<std::vector<std::string>>{
           {}, {"--rows", "head"}, {"--layers-per-group", "2", "--predict", "embedding", "--form", "storage"}}) {
    calibrate(form);
    const Outcome packed = slots("pack", "slot.bin", "slot.kvslot", {"--json", "--force"});
    ASSERT_EQ(packed.status, 0) << packed.err;
    const Json result = parse_json(packed.out, "pack");
    EXPECT_EQ(result.at("tokens"), kTokens);
    EXPECT_EQ(result.at("state_bytes"), std::filesystem::file_size(folder_ / "slot.bin"));
    EXPECT_EQ(result.at("packed_bytes"), std::filesystem::file_size(folder_ / "slot.kvslot"));
    const Outcome restored = slots("unpack", "slot.kvslot", "back.bin", {"--force"});
    ASSERT_EQ(restored.status, 0) << restored.err;
    EXPECT_THAT(restored.out, HasSubstr("back.bin: restored 60 tokens"));
    const std::string before = slurp(folder_ / "slot.bin"), after = slurp(folder_ / "back.bin");
    ASSERT_EQ(after.size(), before.size());
    const std::size_t head = 12 + 4 * kTokens + 8 + 12 * kTokens + 8 + 12;  // up to the first layer's keys
    EXPECT_EQ(after.substr(0, head), before.substr(0, head));
    EXPECT_NE(after, before);
    // The newest tokens are the end of the last layer's values.
    const std::size_t values = config("c.json").at("model").at("kv_heads").get<std::size_t>() *
                               config("c.json").at("model").at("head_dim").get<std::size_t>();
    EXPECT_EQ(after.substr(after.size() - 4 * 2 * values), before.substr(before.size() - 4 * 2 * values));
  }
}

TEST_F(SlotsProgram, RefusesWhatItCannotRead) {
  calibrate({});
  expect_refused(slots("zip", "slot.bin", "x"), 2, "ACTION: found 'zip', expected pack or unpack");
  expect_refused(slots("pack", "none.bin", "x"), 3, "none.bin");
  expect_refused(slots("unpack", "slot.bin", "x"), 3, "slot.bin");
  expect_refused(slots("pack", "slot.bin", "slot.bin", {"--force"}), 2, "the output is the input");
  std::ofstream(folder_ / "cut.bin") << slurp(folder_ / "slot.bin").substr(0, 3000);
  expect_refused(slots("pack", "cut.bin", "x"), 3, "bytes are left");
  write_state_of(1, 32);
  expect_refused(slots("pack", "slot.bin", "x"), 7, "found 1 layers, expected ");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
  const Outcome saved =
      run("kvcalibrate", with_text("eval", {"--method", "full", "--save-config", folder_ / "c.json", "--force"}));
  ASSERT_EQ(saved.status, 0) << saved.err;
  expect_refused(slots("pack", "slot.bin", "x"), 3, "/method: found full, expected transform");
}

TEST_F(SlotsProgram, ASlotBelongsToItsConfig) {
  calibrate({});
  ASSERT_EQ(slots("pack", "slot.bin", "slot.kvslot").status, 0);
  expect_refused(slots("pack", "slot.bin", "slot.kvslot"), 7, "slot.kvslot");
  calibrate({"--rows", "head"});
  expect_refused(slots("unpack", "slot.kvslot", "x"), 7, "another config?");
}

}  // namespace
}  // namespace kvs::testing
