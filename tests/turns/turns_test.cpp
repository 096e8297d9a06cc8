// SPDX-License-Identifier: Apache-2.0
#include "turns/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/error.h"

namespace kvs {
namespace {

using testing::ElementsAre;

struct Turns : ::testing::Test {
  int resource = 0;
  std::vector<std::string> log;
  std::vector<std::size_t> ended;

  void note(std::size_t call, std::size_t place) { log.push_back(std::to_string(call) + "@" + std::to_string(place)); }
  void run(std::size_t count, const std::function<void(std::size_t)>& work) {
    run_in_turns(count, work, [&](std::size_t call) { ended.push_back(call); });
  }
};

TEST_F(Turns, AllCallsUseAPlaceBeforeTheNext) {
  run(3, [&](std::size_t call) {
    for (std::size_t place = 0; place < 2; ++place) {
      wait_for_place(&resource, place);
      note(call, place);
    }
  });
  EXPECT_THAT(log, ElementsAre("0@0", "1@0", "2@0", "0@1", "1@1", "2@1"));
  EXPECT_THAT(ended, ElementsAre(0, 1, 2));
}

TEST_F(Turns, AGroupOfCallsEndsBeforeTheNextBegins) {
  run_in_groups(
      3, 6, 2,
      [&](std::size_t call) {
        for (std::size_t place = 0; place < 2; ++place) {
          wait_for_place(&resource, place);
          note(call, place);
        }
      },
      [&](std::size_t call) { ended.push_back(call); });
  EXPECT_THAT(log, ElementsAre("3@0", "4@0", "3@1", "4@1", "5@0", "5@1"));
  EXPECT_THAT(ended, ElementsAre(3, 4, 5));
}

TEST_F(Turns, PlacesStartAgainAfterTheLast) {
  run(2, [&](std::size_t call) {
    for (const std::size_t place : call == 0 ? std::vector<std::size_t>{1, 2, 1} : std::vector<std::size_t>{2, 0}) {
      wait_for_place(&resource, place);
      note(call, place);
    }
  });
  EXPECT_THAT(log, ElementsAre("0@1", "0@2", "1@2", "1@0", "0@1"));
}

TEST_F(Turns, OneCallRunsWithoutGivingWay) {
  run(1, [&](std::size_t call) {
    wait_for_place(&resource, 5);
    note(call, 5);
  });
  EXPECT_THAT(log, ElementsAre("0@5"));
  EXPECT_THAT(ended, ElementsAre(0));
}

TEST_F(Turns, ResultsEndInOrder) {
  run(3, [&](std::size_t call) {
    wait_for_place(&resource, 2 - call);  // the last call is the first to go on
    note(call, 2 - call);
  });
  EXPECT_THAT(log, ElementsAre("2@0", "1@1", "0@2"));
  EXPECT_THAT(ended, ElementsAre(0, 1, 2));
}

TEST_F(Turns, AFailureLetsTheCallsBeforeItEndAndUnwindsTheOthers) {
  struct Unwound {
    std::vector<std::string>* log;
    ~Unwound() { log->push_back("unwound"); }
  };
  const auto work = [&](std::size_t call) {
    const Unwound unwound{&log};
    wait_for_place(&resource, 0);
    if (call == 1) throw std::runtime_error("call 1");
    wait_for_place(&resource, 1);
    note(call, 1);
  };
  EXPECT_THROW(run(3, work), std::runtime_error);
  EXPECT_THAT(log, ElementsAre("unwound", "0@1", "unwound", "unwound"));
  EXPECT_THAT(ended, ElementsAre(0));
}

// The C++ runtime keeps the exceptions that are being handled for each thread, not for each stack.
TEST_F(Turns, CallsMayGiveWayWhileTheyHandleAnException) {
  run(4, [&](std::size_t call) {
    try {
      throw Error(ErrorCode::kData, "call " + std::to_string(call), "test");
    } catch (const Error& error) {
      for (std::size_t place = 0; place < 3; ++place) wait_for_place(&resource, call % 2 == 0 ? place : 2 - place);
      EXPECT_EQ(std::string(error.what()), "call " + std::to_string(call) + ": test");
      try {
        throw;
      } catch (const Error& again) {
        EXPECT_EQ(&again, &error);
      }
    }
    EXPECT_EQ(std::current_exception(), nullptr);
  });
  EXPECT_THAT(ended, ElementsAre(0, 1, 2, 3));
}

TEST_F(Turns, ACallWaitsUntilAnotherIsReady) {
  bool ready = false;
  run(2, [&](std::size_t call) {
    if (call == 0) {
      wait_until([&] { return ready; });
      note(call, 0);
      return;
    }
    note(call, 0);
    ready = true;
  });
  EXPECT_THAT(log, ElementsAre("1@0", "0@0"));
}

TEST_F(Turns, CallsThatWaitForEachOtherAreAnError) {
  EXPECT_THROW(run(2, [](std::size_t) { wait_until([] { return false; }); }), Error);
  EXPECT_THROW(wait_until([] { return false; }), Error);
}

TEST_F(Turns, TheClockOfACallStopsWhileOthersGoOn) {
  std::vector<double> seconds(2);
  run(2, [&](std::size_t call) {
    const double start = turn_seconds();
    wait_for_place(&resource, 0);
    if (call == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    wait_for_place(&resource, 1);
    seconds[call] = turn_seconds() - start;
  });
  EXPECT_LT(seconds[0], 0.04);
  EXPECT_GE(seconds[1], 0.05);
}

TEST_F(Turns, RunsOfACallDoNotGiveWayToEachOther) {
  run(2, [&](std::size_t) {
    run_in_turns(
        2,
        [&](std::size_t call) {
          wait_for_place(&resource, 0);
          note(call, 0);
        },
        [](std::size_t) {});
  });
  EXPECT_THAT(log, ElementsAre("0@0", "1@0", "0@0", "1@0"));
}

}  // namespace
}  // namespace kvs
