// SPDX-License-Identifier: Apache-2.0
#include "run/exit_report.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "core/error.h"
#include "io/file.h"
#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::ExitedWithCode;

/// Calls `end` in the environment of program "p" with a locked output.
[[noreturn]] void die(const std::filesystem::path& output, const std::function<void()>& end) {
  install_exit_reports("p");
  const OutputLock lock(output);
  std::thread([&] { end(); }).join();
  std::_Exit(99);
}

class ExitReport : public ::testing::Test {
 protected:
  ExitReport() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  void expect_no_lock() const { EXPECT_FALSE(std::filesystem::exists(folder_ / "out.json.lock")); }

  TemporaryFolder folder_;
  std::filesystem::path out_ = folder_ / "out.json";
};

TEST_F(ExitReport, OfAThreadWithoutMemory) {
  EXPECT_EXIT(die(out_, [] { throw std::bad_alloc(); }), ExitedWithCode(6), "^p: error: memory: found too little.*\n$");
  expect_no_lock();
}

TEST_F(ExitReport, OfAThreadThatLetsAnErrorGo) {
  EXPECT_EXIT(die(out_, [] { throw Error(ErrorCode::kData, "w", "bad"); }), ExitedWithCode(5), "^p: error: w: bad\n$");
  EXPECT_EXIT(die(out_, [] { throw std::logic_error("oops"); }), ExitedWithCode(70), "^p: error: internal: oops\n$");
}

TEST_F(ExitReport, OfALibraryThatEndsTheProgram) {
  EXPECT_EXIT(die(out_, [] { std::exit(EXIT_FAILURE); }), ExitedWithCode(6), "");
  expect_no_lock();
}

TEST_F(ExitReport, AThreadThatCannotBeMadeIsNoBug) {
  const auto failure = std::make_exception_ptr(
      std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "thread"));
  EXPECT_EQ(print_exit("p", failure), 6);
}

}  // namespace
}  // namespace kvs::testing
