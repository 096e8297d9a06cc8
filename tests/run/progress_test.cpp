// SPDX-License-Identifier: Apache-2.0
#include "run/progress.h"

#include <gtest/gtest.h>

#include "run/interruption.h"

namespace kvs {
namespace {

TEST(ProgressBar, FitsEveryTerminal) {
  for (const char* const label : {"eval", "compare: transform moments", "loading a model whose name has no end at all"})
    for (std::size_t columns = 1; columns < 200; ++columns) {
      const std::string line = progress_bar(label, 0.5, "2 h 59 min left", columns);
      EXPECT_TRUE(line.size() < columns || line == "  50 %") << columns << " [" << line << ']';
    }
}

TEST(ProgressBar, GivesUpTheBarFirstThenTheTimeThenTheLabel) {
  const auto shown = [](std::size_t columns) { return progress_bar("moments", 0.5, "9.0 s left", columns); };
  EXPECT_EQ(shown(80), "moments [###############               ]  50 %  9.0 s left");
  EXPECT_EQ(shown(40), "moments [#####      ]  50 %  9.0 s left");
  EXPECT_EQ(shown(30), "moments  50 %  9.0 s left");
  EXPECT_EQ(shown(20), "moments  50 %");
  EXPECT_EQ(shown(12), "momen  50 %") << "one column less than a line, which would wrap";
}

TEST(ProgressBar, CountsWideCharactersTwice) { EXPECT_EQ(progress_bar("模型模型", 1, "", 13), "模型模 100 %"); }

TEST(Progress, IsWhatAnInterruptionSays) {
  Progress progress("eval", std::size_t{8}, true);
  progress.counter()(2);
  EXPECT_EQ(interruption(), " at 25 % of eval");
}

TEST(PhaseProgress, BeginsAnewWithEachPhase) {
  PhaseProgress progress(true);
  progress.update("pairs", 3, 4);
  EXPECT_EQ(interruption(), " at 75 % of pairs");
  progress.update("layers", 0, 10);
  EXPECT_EQ(interruption(), " at 0 % of layers");
  progress.update("layers", 5, 20);  // there are more than was estimated
  EXPECT_EQ(interruption(), " at 25 % of layers");
}

}  // namespace
}  // namespace kvs
