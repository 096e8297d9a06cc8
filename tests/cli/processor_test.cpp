// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/json.h"
#include "tests/cli/program.h"

// Other processors than this one, by QEMU's emulation of a user's process.
namespace kvs::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr const char* kEmulator = "/usr/bin/qemu-x86_64";
const std::string kPrograms = KVS_BINARY_DIR;

class Processor : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kEmulator)) GTEST_SKIP() << kEmulator << " is not installed (Debian: qemu-user)";
  }
  static Outcome run_on(const std::string& processor, const std::string& program, std::vector<std::string> words) {
    words.insert(words.begin(), {"-cpu", processor, kPrograms + "/" + program});
    return run(kEmulator, words);
  }
};

TEST_F(Processor, WithoutAvx2IsRefusedInOneLine) {
  for (const char* program : {"kvspectrum", "kvcalibrate"}) {
    const Outcome outcome = run_on("SandyBridge", program, {"--help"});
    EXPECT_EQ(outcome.status, 6);
    EXPECT_EQ(outcome.out, "");
    const std::string expected =
        std::string(program) +
        ": error: processor: found no AVX2, FMA and BMI2, expected an x86-64 processor that has "
        "them (level v3)\n";
    EXPECT_THAT(outcome.err, EndsWith(expected));  // the emulator's own warnings come first
  }
}

TEST_F(Processor, WithAvx2AloneGivesTheBitsOfOneThatIsHeldToIt) {
  const TemporaryFolder folder;
  write_tiny_model(folder / "model");
  write_tokens_file(folder / "tokens", 1, 64);
  for (const char* type : {"f32", "bf16"}) {
    const std::vector<std::string> words{"eval",
                                         "--method",
                                         "full",
                                         "--model",
                                         folder / "model",
                                         "--tokens-file",
                                         folder / "tokens",
                                         "--window",
                                         "64",
                                         "--dtype",
                                         type,
                                         "--threads",
                                         "1",
                                         "--json",
                                         "--quiet"};
    const Outcome emulated = run_on("Haswell", "kvcalibrate", words);
    ASSERT_EQ(emulated.status, 0) << emulated.err;
    std::vector<std::string> held{"DNNL_MAX_CPU_ISA=AVX2", kPrograms + "/kvcalibrate"};
    held.insert(held.end(), words.begin(), words.end());
    const Outcome native = run("/usr/bin/env", held);
    ASSERT_EQ(native.status, 0) << native.err;
    EXPECT_EQ(parse_json(emulated.out, "emulated").at("nll_mean"), parse_json(native.out, "native").at("nll_mean"));
  }
}

TEST(HeldToAvx2, IsNamedByInfoAndByTheEstimate) {
  const TemporaryFolder folder;
  write_tiny_model(folder / "model");
  write_tokens_file(folder / "tokens", 1, 64);
  const auto held = [](const std::string& program, std::vector<std::string> words) {
    words.insert(words.begin(), {"DNNL_MAX_CPU_ISA=AVX2", kPrograms + "/" + program});
    return run("/usr/bin/env", words);
  };
  const Outcome info = held("kvspectrum", {"info", folder / "model", "--json"});
  ASSERT_EQ(info.status, 0) << info.err;
  EXPECT_EQ(parse_json(info.out, "info").at("processor"), (Json{{"isa", "avx2"}, {"bf16_faster", false}}));
  const Outcome eval = held("kvcalibrate", {"eval", "--method", "full", "--model", folder / "model", "--tokens-file",
                                            folder / "tokens", "--window", "64", "--dtype", "bf16"});
  EXPECT_THAT(eval.err, HasSubstr("on cpu (avx2; bf16 is no faster than f32 here)"));
}

}  // namespace
}  // namespace kvs::testing
