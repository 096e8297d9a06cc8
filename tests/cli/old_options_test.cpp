// SPDX-License-Identifier: Apache-2.0
// Options of version 0.1 are read under their old names, with a note.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

struct Renamed {
  const char *program, *command, *before, *now;
};

constexpr Renamed kRenamed[]{{"kvcalibrate", "eval", "against", "reference"},
                             {"kvcalibrate", "lagkv", "held-windows", "holdout-windows"},
                             {"kvcalibrate", "faedkv", "by-layer", "per-layer-rounds"},
                             {"kvcalibrate", "elitekv", "by-layer", "per-layer-rounds"},
                             {"kvcalibrate", "elitekv", "held-out", "holdout-documents"},
                             {"kvcalibrate", "elitekv", "split", "singular-values"},
                             {"kvcalibrate", "elitekv", "ratio", "cache-ratio"},
                             {"kvcalibrate", "compare", "full", "no-early-stop"},
                             {"kvcalibrate", "compare", "losses", "max-ppl-increase"},
                             {"kvcalibrate", "compare", "compose", "types-with-methods"},
                             {"kvcalibrate", "compare", "stores", "types"},
                             {"kvcalibrate", "compare", "decode", "timed-tokens"},
                             {"kvcalibrate", "store", "fp8-scale", "scale"},
                             {"kvcalibrate", "transform", "costs", "reuse-sensitivities"},
                             {"kvcalibrate", "cost", "tokens", "lengths"},
                             {"kvcalibrate", "generate", "tokens", "max-new-tokens"},
                             {"kvcalibrate", "export", "dtype", "matrix-dtype"},
                             {"kvspectrum", "capture", "store", "state-dtype"},
                             {"kvspectrum", "capture", "split", "parts"},
                             {"kvspectrum", "perturb", "tokens", "compared-tokens"},
                             {"kvspectrum", "retain", "keep", "kept-shares"},
                             {"kvspectrum", "scores", "document", "window-index"}};

TEST(OldOptions, AreReadWithANote) {
  for (const auto& [program, command, before, now] : kRenamed) {
    const std::string old_option = std::string("--") + before, option = std::string("--") + now;
    // --help checks the forms of values: this one is of no option but flags and texts.
    std::vector<std::string> words{command, old_option, "--help", "all"};
    if (std::string_view(before) != "full") words[1] += "=x-1";
    const Outcome outcome = run(program, words);
    if (outcome.status == 0) {
      EXPECT_THAT(outcome.err, HasSubstr("note: " + old_option + " is now " + option + "\n")) << command;
      EXPECT_THAT(outcome.out, HasSubstr("\n  " + option + " ")) << command;
    } else {
      EXPECT_THAT(outcome.err, HasSubstr(option + ": found 'x-1'")) << command;
    }
  }
}

TEST(OldOptions, MeanWhatTheyMeant) {
  const Outcome cost = run("kvcalibrate", {"cost", "--geometry", "llama2-7b", "--tokens", "8192", "--json"});
  EXPECT_EQ(cost.status, 0) << cost.err;
  EXPECT_EQ(cost.out, run("kvcalibrate", {"cost", "--geometry", "llama2-7b", "--lengths=8192", "--json"}).out);
  EXPECT_EQ(cost.err, "note: --tokens is now --lengths\n");
  const Outcome both = run("kvcalibrate", {"cost", "--geometry", "llama2-7b", "--tokens", "64", "--lengths", "8192"});
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--lengths: found twice, expected once"));
}

}  // namespace
}  // namespace kvs::testing
