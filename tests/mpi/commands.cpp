// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/mpi/ranks.h"

namespace kvs::testing {

std::vector<SharedCommand> shared_commands() {
  const std::string spectrum = "kvspectrum", calibrate = "kvcalibrate";
  return {
      {calibrate,
       "eval",
       {"--method", "lagkv", "--set", "lag=4", "ratio=0.25", "sinks=2", "--out", "OUT"},
       "eval.json"},
      {spectrum, "capture", {"--states", "q_pre,k_pre,v", "--state-dtype", "bf16", "--out", "OUT"}, "capture.h5"},
      {spectrum, "capture", {"--parts", "4", "--out", "OUT"}, "parts.h5"},
      {spectrum, "spectrum", {"--out-dir", "OUT"}, "spectrum"},
      {calibrate, "faedkv", {"--chunks", "4", "--sinks", "2", "--recent", "3", "--out", "OUT"}, "faedkv.json"},
      {calibrate,
       "faedkv",
       {"--chunks", "4", "--sinks", "2", "--recent", "3", "--passes", "90", "--sweep", "2,3", "--out", "OUT"},
       "race.json"},
      {calibrate, "elitekv", {"--elite", "2", "--rank", "12", "--out", "OUT"}, "factors.json"},
      {calibrate, "elitekv", {"--elite", "2", "--norm", "1", "--out", "OUT"}, "distance.json"},
      {calibrate, "freqkv", {"--budget", "50%", "--per-layer-rounds", "1", "--out", "OUT"}, "freqkv.json"},
      {calibrate, "lagkv", {"--budget", "75%", "--out", "OUT"}, "lagkv.json"},
      {calibrate,
       "compare",
       {"--no-early-stop", "--timed-tokens", "0", "--methods", "full,streaming,lagkv", "--budgets", "50%", "--out",
        "OUT"},
       "compare.json"},
  };
}

std::string name_of_command(const ::testing::TestParamInfo<SharedCommand>& info) {
  return info.param.out.substr(0, info.param.out.find('.'));
}

}  // namespace kvs::testing
