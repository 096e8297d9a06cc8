// SPDX-License-Identifier: Apache-2.0
#include "calibrate/budget/loss_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

#include "eval/document_loss.h"
#include "ranks/one_process.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

/// Returns what a resumed run reads from one record.
std::vector<double> replayed(const Json& record, bool together) {
  const test::TemporaryDirectory folder;
  const std::filesystem::path path = folder.path() / "out.journal";
  Journal::create(path, "run").append(record);
  Journal journal = Journal::resume(path, "run");
  const auto alone = make_one_process();
  LossLog log({}, 9, &journal, *alone);
  const auto measure = [](std::size_t) -> double { throw std::logic_error("measured again"); };
  return together ? log.together(record.size(), measure) : log.each(1, measure);
}

TEST(LossLog, ARecordIsALossThatCanBeMeasured) {
  for (const double loss : {0.0, -1e-7, 2.5, 1e38, kOverflowLoss}) {
    EXPECT_EQ(replayed({loss}, false), std::vector{loss});
    EXPECT_EQ(replayed({1.0, loss}, true), (std::vector{1.0, loss}));
  }
  for (const double loss : {-5.0, 1e40, 1e99, -kOverflowLoss}) {
    const auto expect_refusal = [&](const Json& record, bool together, const char* at) {
      test::expect_error(ErrorCode::kInput, std::string("out.journal: line 2: /") + at,
                         [&] { (void)replayed(record, together); });
    };
    expect_refusal({loss}, false, "0: found ");
    expect_refusal({1.0, loss}, true, "1: found ");
  }
}

}  // namespace
}  // namespace kvs
