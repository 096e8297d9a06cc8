// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/isolated.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "tests/io/sanitizer.h"
#include "tests/io/temporary_directory.h"

namespace kvs::test {
namespace {

TEST(Isolated, ReturnsWhatTheTaskReturns) {
  std::string large(3UL << 20, 'x');  // more than a pipe holds
  EXPECT_EQ(run_isolated("f", [&] { return large; }), large);
  EXPECT_EQ(run_isolated("f", [] { return std::string(); }), "");
}

TEST(Isolated, RethrowsTheTasksErrorWithCodeAndText) {
  const auto act = [] {
    run_isolated("f", []() -> std::string { throw Error(ErrorCode::kUnsupported, "f: /a", "found x: y"); });
  };
  expect_error(ErrorCode::kUnsupported, "f: /a: found x: y", act);
}

TEST(Isolated, OutlivesATaskThatDies) {
  for (const int number : {SIGSEGV, SIGKILL}) {
    const auto act = [&] {
      run_isolated("f", [&] {
        ::signal(number, SIG_DFL);
        ::raise(number);
        return std::string("alive");
      });
    };
    expect_error(ErrorCode::kInput, "f: the HDF5 library failed on this file (signal " + std::to_string(number), act);
  }
  expect_error(ErrorCode::kInput, "failed on this file",
               [] { run_isolated("f", []() -> std::string { ::_exit(0); }); });
}

TEST(Isolated, StopsATaskThatLoopsForEver) {
  const auto act = [] {
    run_isolated("f",
                 []() -> std::string {
                   for (volatile bool forever = true; forever;) {
                   }
                   return "";
                 },
                 {.cpu_seconds = 1});
  };
  expect_error(ErrorCode::kInput, "failed on this file (signal", act);
}

TEST(Isolated, StopsATaskThatTakesTooMuchMemory) {
  if (test::sanitized()) GTEST_SKIP() << "AddressSanitizer ends the process itself when memory runs out";
  const auto act = [] {
    run_isolated("f", [] { return std::string(1, static_cast<char>(std::vector<char>(64UL << 20, 'x').back())); },
                 {.memory_bytes = 16UL << 20});
  };
  expect_error(ErrorCode::kInput, "more memory", act);
}

TEST(Isolated, AFailureWithoutTheMemoryThatIsAllowedIsTheEnvironments) {
  if (test::sanitized()) GTEST_SKIP() << "AddressSanitizer takes its own address space";
  const auto fail = [] { run_isolated("f", []() -> std::string { throw Error(ErrorCode::kInput, "f", "missing"); }); };
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit callers{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &callers), 0);
  rlimit tight = callers;
  tight.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (64UL << 20);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &tight), 0);
  expect_error(ErrorCode::kEnvironment, "found less than 512 MiB", fail);
  EXPECT_EQ(run_isolated("f", [] { return std::string("read"); }), "read");
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &callers), 0);
  expect_error(ErrorCode::kInput, "f: missing", fail);
}

TEST(Isolated, TaskCanWriteNoFile) {
  const TemporaryDirectory directory;
  run_isolated("f", [&] {
    ::signal(SIGXFSZ, SIG_IGN);
    std::ofstream(directory / "written") << "x" << std::flush;
    return std::string();
  });
  EXPECT_EQ(read_all(directory / "written"), "");
}

}  // namespace
}  // namespace kvs::test
