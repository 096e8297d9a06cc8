// SPDX-License-Identifier: Apache-2.0
// Fails the Nth system call of an operation for every N, and checks the files that are left. The functions below
// replace libc's in this test program and pass every call on unless a fault is armed.
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "io/file.h"
#include "io/journal.h"
#include "tests/io/temporary_directory.h"

namespace {

struct Fault {
  int countdown = 0;  // the call that fails, 1 for the next one; 0 for none
  int error = 0;
  bool only_syncs = false;
  bool halve_writes = false;
  int calls_after = 0;  // number of syncs after the fault
};
Fault fault;
bool armed = false;

bool strikes(bool is_sync = false) {
  if (!armed || fault.countdown < 0) {
    fault.calls_after += armed && is_sync ? 1 : 0;
    return false;
  }
  if ((fault.only_syncs && !is_sync) || fault.countdown == 0 || --fault.countdown > 0) return false;
  fault.countdown = -1;
  errno = fault.error;
  return true;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

std::size_t shortened(std::size_t size) { return armed && fault.halve_writes && size > 1 ? size / 2 : size; }

}  // namespace

extern "C" {
ssize_t write(int descriptor, const void* data, std::size_t size) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  return strikes() ? -1 : real(descriptor, data, shortened(size));
}
ssize_t pwrite(int descriptor, const void* data, std::size_t size, off_t offset) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t, off_t)>("pwrite");
  return strikes() ? -1 : real(descriptor, data, shortened(size), offset);
}
int fsync(int descriptor) {
  static const auto real = next<int (*)(int)>("fsync");
  return strikes(true) ? -1 : real(descriptor);
}
int fdatasync(int descriptor) {
  static const auto real = next<int (*)(int)>("fdatasync");
  return strikes(true) ? -1 : real(descriptor);
}
int close(int descriptor) {  // a failing close has still closed the file
  static const auto real = next<int (*)(int)>("close");
  const int result = real(descriptor);
  return strikes() ? -1 : result;
}
int flock(int descriptor, int operation) noexcept {
  static const auto real = next<int (*)(int, int)>("flock");
  return strikes() ? -1 : real(descriptor, operation);
}
int rename(const char* from, const char* to) noexcept {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  return strikes() ? -1 : real(from, to);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  static const auto real = next<int (*)(int, const char*, int, const char*, unsigned)>("renameat2");
  return strikes() ? -1 : real(from_folder, from, to_folder, to, flags);
}
}

namespace kvs::test {
namespace {

using testing::ElementsAre;

struct Outcome {
  bool struck = false;
  bool threw = false;
  int syncs_after = 0;
};

/// Runs `act` with `plan` armed. Any result except success or an environment error fails the test.
template <class Act>
Outcome run_with(const Fault& plan, Act&& act) {
  Outcome outcome;
  fault = plan;
  armed = true;
  try {
    act();
    armed = false;
  } catch (const Error& error) {
    armed = false;
    outcome.threw = true;
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment) << error.what();
  }
  outcome.struck = fault.countdown < 0;
  outcome.syncs_after = fault.calls_after;
  return outcome;
}

TEST(FileFaults, AtomicWriteLeavesTheOldOrTheWholeNewFileWhicheverCallFails) {
  for (const bool force : {true, false})
    for (int n = 1;; ++n) {
      const TemporaryDirectory directory;
      if (force) directory.write("f", "old");
      const auto outcome = run_with({.countdown = n, .error = ENOSPC},
                                    [&] { write_file_atomically(directory / "f", "new and longer", force); });
      if (!outcome.struck) {
        EXPECT_GE(n, 6) << "expected to fail write, fsync, close, rename and the directory's fsync";
        break;
      }
      const std::set<std::string> names = directory.names();
      const std::string left = names.empty() ? "" : read_all(directory / "f");
      EXPECT_THAT(left, testing::AnyOf(force ? "old" : "", "new and longer")) << "call " << n;
      EXPECT_TRUE(names.empty() || names == std::set<std::string>{"f"}) << "call " << n;
      // Only the close of the directory, after all data are durable, may fail unnoticed.
      EXPECT_TRUE(outcome.threw || left == "new and longer") << "call " << n;
    }
}

TEST(FileFaults, AFailedSyncIsNotTriedAgain) {  // catalogue item 121
  const TemporaryDirectory directory;
  directory.write("f", "old");
  const Outcome outcome = run_with({.countdown = 1, .error = EIO, .only_syncs = true},
                                   [&] { write_file_atomically(directory / "f", "new", true); });
  EXPECT_TRUE(outcome.threw);
  EXPECT_EQ(outcome.syncs_after, 0);
  EXPECT_EQ(read_all(directory / "f"), "old");
}

TEST(FileFaults, ShortWritesAndInterruptionsAreGoneOnFrom) {
  const TemporaryDirectory directory;
  const std::string text(1000, 'x');
  const Outcome outcome = run_with({.countdown = 2, .error = EINTR, .halve_writes = true},
                                   [&] { write_file_atomically(directory / "f", text, false); });
  EXPECT_TRUE(outcome.struck);
  EXPECT_FALSE(outcome.threw);
  EXPECT_EQ(read_all(directory / "f"), text);
}

TEST(FileFaults, AFileSystemWithoutNoReplaceGetsALinkThatDoesNotReplaceEither) {
  const TemporaryDirectory directory;
  // Call 6 is the rename, after close, pwrite, close, fsync and close.
  const auto write = [&] { write_file_atomically(directory / "f", "new", false); };
  EXPECT_FALSE(run_with({.countdown = 6, .error = EINVAL}, write).threw);
  EXPECT_EQ(read_all(directory / "f"), "new");
  directory.write("f", "other");
  fault = {.countdown = 6, .error = EINVAL};
  armed = true;
  expect_error(ErrorCode::kConflict, "exists", write);
  armed = false;
  EXPECT_EQ(read_all(directory / "f"), "other");
  EXPECT_THAT(directory.names(), ElementsAre("f"));
}

TEST(FileFaults, ALockThatTheFileSystemDoesNotSupportIsAnErrorWithAHint) {  // catalogue item 126
  const TemporaryDirectory directory;
  fault = {.countdown = 1, .error = ENOLCK};
  armed = true;
  expect_error(ErrorCode::kEnvironment, "--no-lock", [&] { OutputLock lock(directory / "out"); });
  armed = false;
  const Outcome outcome = run_with({.countdown = 2, .error = ENOSPC},
                                   [&] { OutputLock lock(directory / "out"); });  // call 2 writes the pid
  EXPECT_TRUE(outcome.threw);
  EXPECT_NO_THROW(OutputLock(directory / "out"));
}

TEST(FileFaults, JournalCommitsOnlyWhatWasSyncedAndStopsAtTheFirstFailure) {  // catalogue items 115 and 121
  const Json identity{{"run", 1}};
  int failures = 0;
  for (int n = 1;; ++n) {
    const TemporaryDirectory directory;
    const auto path = directory / "j";
    std::optional<Journal> journal = Journal::create(path, identity);
    int committed = 0;
    const auto outcome = run_with({.countdown = n, .error = EIO}, [&] {
      for (int doc = 0; doc < 3; ++doc) {
        journal->append({{"doc", doc}});
        ++committed;
      }
    });
    if (!outcome.struck) break;
    ++failures;
    EXPECT_TRUE(outcome.threw) << "call " << n;
    EXPECT_EQ(outcome.syncs_after, 0) << "call " << n;
    expect_error(ErrorCode::kInternal, "append", [&] { journal->append({{"doc", 9}}); });
    journal.reset();
    const std::size_t kept = Journal::resume(path, identity).records().size();
    EXPECT_GE(kept, static_cast<std::size_t>(committed)) << "call " << n;
    EXPECT_LE(kept, static_cast<std::size_t>(committed) + 1) << "call " << n;
  }
  EXPECT_EQ(failures, 6);  // a write and a sync for each of three records
}

TEST(FileFaults, JournalGoesOnFromAShortWrite) {
  const TemporaryDirectory directory;
  const Json identity{{"run", 1}};
  Journal journal = Journal::create(directory / "j", identity);
  EXPECT_FALSE(run_with({.halve_writes = true}, [&] { journal.append({{"doc", 0}}); }).threw);
  EXPECT_THAT(Journal::resume(directory / "j", identity).records(), ElementsAre(Json{{"doc", 0}}));
}

}  // namespace
}  // namespace kvs::test
