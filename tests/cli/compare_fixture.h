// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/text_fixture.h"

namespace kvs::testing {

/// kvcalibrate compare on a tiny model.
class ComparePrograms : public TextPrograms {
 protected:
  std::vector<std::string> compare(const std::string& out, std::vector<std::string> more = {}) const {
    if (std::ranges::find(more, "--methods") == more.end())
      more.insert(more.end(), {"--methods", "full,streaming,lagkv,snapkv,gqa"});
    const auto methods = std::ranges::find(more, "--methods") + 1;
    if (methods->starts_with("full")) more.insert(more.end(), {"--types", "q4_0"});
    more.insert(more.end(),
                {"--budgets", "75%,50%", "--types-with-methods", "none", "--prefix", "20", "--out", folder_ / out});
    return with_text("compare", more);
  }
  /// Calibrated on another text, elitekv and transform among the methods.
  std::vector<std::string> calibrated(std::vector<std::string> more = {}) const {
    std::string text;
    for (int n = 0; n < 200; ++n) text += std::string(1, static_cast<char>('a' + n * n % 23)) + (n % 5 == 0 ? " " : "");
    std::ofstream(folder_ / "other.txt") << text;
    more.insert(
        more.end(),
        {"--methods", "full,streaming,lagkv,triattention,oscar,elitekv,transform,transform-head,kvtc",
         "--calibration-text", folder_ / "other.txt", "--calibration-window", "48", "--calibration-documents", "3"});
    return more;
  }
  Json compared(const std::string& out, const std::vector<std::string>& more = {}) const {
    const Outcome outcome = run("kvcalibrate", compare(out, more));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return config(out);
  }
  static const Json& one(const Json& result, const std::string& label, double budget) {
    const Json& configurations = result.at("configurations");
    const auto found = std::ranges::find_if(
        configurations, [&](const Json& one) { return one.at("label") == label && one.at("budget") == budget; });
    EXPECT_NE(found, configurations.end()) << label;
    return found == configurations.end() ? configurations.front() : *found;
  }
};

}  // namespace kvs::testing
