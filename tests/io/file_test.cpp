// SPDX-License-Identifier: Apache-2.0
#include "io/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/io/temporary_directory.h"

namespace kvs::test {
namespace {

using testing::ElementsAre;

/// Runs `act` in a child and returns its wait status, so that a limit or a death stays in the child.
template <class Act>
int run_in_child(Act&& act) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(act());
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

/// Returns the id of a process that has ended and was waited for.
pid_t dead_pid() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST(MappedFile, HoldsTheBytesAlsoAfterAMove) {
  const TemporaryDirectory directory;
  MappedFile first(directory.write("f", "abc"));
  const MappedFile file(std::move(first));
  ASSERT_EQ(file.bytes().size(), 3U);
  EXPECT_EQ(file.bytes()[2], std::byte{'c'});
  EXPECT_NO_THROW(file.check_unchanged());
}

TEST(MappedFile, RefusesWhatCannotBeMapped) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
  expect_error(ErrorCode::kInput, "No such file", [&] { MappedFile file(directory / "missing"); });
  expect_error(ErrorCode::kInput, "directory", [&] { MappedFile file(directory.path()); });
  expect_error(ErrorCode::kInput, "empty", [&] { MappedFile file(directory.write("empty", "")); });
  expect_error(ErrorCode::kInput, "regular file", [&] { MappedFile file(directory / "fifo"); });
  const std::string cut = (directory / "empty").string() + '\0' + "tail";
  expect_error(ErrorCode::kInput, "No such file", [&] { MappedFile file{fs::path(cut)}; });
}

TEST(CopyRegularFile, NamesTheSourceThatCannotBeCopied) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
  const auto copy = [&](const char* name) { copy_regular_file(directory / name, directory / "copy"); };
  expect_error(ErrorCode::kInput, "fifo: expected a regular file", [&] { copy("fifo"); });
  expect_error(ErrorCode::kInput, "found a directory, expected a file",
               [&] { copy_regular_file(directory.path(), directory / "copy"); });
  expect_error(ErrorCode::kInput, "missing: cannot open", [&] { copy("missing"); });
  EXPECT_FALSE(fs::exists(directory / "copy"));
  directory.write("empty", "");
  copy("empty");
  EXPECT_TRUE(fs::is_empty(directory / "copy"));
}

TEST(MappedFile, NoticesThatTheFileWasReplacedTruncatedOrRemoved) {
  const TemporaryDirectory directory;
  const MappedFile replaced(directory.write("a", "abc")), cut(directory.write("b", "abc"));
  const MappedFile removed(directory.write("c", "abc"));
  fs::rename(directory.write("new", "abc"), directory / "a");
  fs::resize_file(directory / "b", 2);
  fs::remove(directory / "c");
  for (const MappedFile* file : {&replaced, &cut, &removed})
    expect_error(ErrorCode::kInput, "changed while reading", [&] { file->check_unchanged(); });
}

TEST(ReadTextFile, ReadsUpToItsLimitAndNoFurther) {
  const TemporaryDirectory directory;
  const fs::path path = directory.write("f", "12345678");
  EXPECT_EQ(read_text_file(path, 8), "12345678");
  expect_error(ErrorCode::kInput, "found 8 bytes, expected at most 7", [&] { read_text_file(path, 7); });
  EXPECT_EQ(read_text_file(directory.write("empty", ""), 8), "");
  expect_error(ErrorCode::kInput, "directory", [&] { read_text_file(directory.path(), 8); });
}

TEST(ReadTextFile, ReadsAndLimitsAFileThatStatesNoSize) {
  struct stat status {};
  ASSERT_EQ(::stat("/proc/self/status", &status), 0);
  ASSERT_EQ(status.st_size, 0);
  EXPECT_THAT(read_text_file("/proc/self/status", 1U << 20), testing::HasSubstr("Pid:"));
  expect_error(ErrorCode::kInput, "over 10 bytes", [] { read_text_file("/proc/self/status", 10); });
}

TEST(ReadTextFile, CallsOutOfDescriptorsAnEnvironmentError) {  // catalogue item 120
  const TemporaryDirectory directory;
  const fs::path path = directory.write("f", "x");
  const int status = run_in_child([&] {
    const rlimit none{0, 0};  // whichever descriptors the caller left open
    ::setrlimit(RLIMIT_NOFILE, &none);
    try {
      read_text_file(path, 8);
    } catch (const Error& error) {
      return static_cast<int>(error.code());
    }
    return 0;
  });
  EXPECT_EQ(WEXITSTATUS(status), 6);
}

TEST(CheckOutput, AcceptsAFreePlaceAndWithForceAFile) {
  const TemporaryDirectory directory;
  EXPECT_NO_THROW(check_output(directory / "new.json", false));
  EXPECT_NO_THROW(check_output(directory.write("old.json", "x"), true));
  EXPECT_EQ(read_all(directory / "old.json"), "x");
}

TEST(CheckOutput, RefusesWhatCannotBeWritten) {  // catalogue items 112 and 116
  const TemporaryDirectory directory;
  const fs::path file = directory.write("file", "x");
  expect_error(ErrorCode::kConflict, "exists", [&] { check_output(file, false); });
  expect_error(ErrorCode::kEnvironment, "No such file", [&] { check_output(directory / "none/out", false); });
  expect_error(ErrorCode::kEnvironment, "directory", [&] { check_output(file / "out", false); });
  expect_error(ErrorCode::kEnvironment, "found a directory", [&] { check_output(directory.path(), true); });
  expect_error(ErrorCode::kEnvironment, "no regular file", [&] { check_output("/dev/full", true); });
  expect_error(ErrorCode::kUsage, "name", [&] { check_output("", false); });
  expect_error(ErrorCode::kUsage, "name", [&] { check_output(directory.path() / "", false); });
}

TEST(WriteFileAtomically, FailsWhereNoFileCanBeCreated) {  // sysfs refuses new files, also to root
  expect_error(ErrorCode::kEnvironment, "/sys/kernel",
               [] { write_file_atomically("/sys/kernel/kvs.json", "x", false); });
}

TEST(WriteFileAtomically, CreatesAndWithForceReplaces) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "f", "one", false);
  EXPECT_EQ(read_all(directory / "f"), "one");
  expect_error(ErrorCode::kConflict, "exists", [&] { write_file_atomically(directory / "f", "two", false); });
  EXPECT_EQ(read_all(directory / "f"), "one");
  write_file_atomically(directory / "f", "three", true);
  EXPECT_EQ(read_all(directory / "f"), "three");
  EXPECT_THAT(directory.names(), ElementsAre("f"));
}

TEST(WriteFileAtomically, WritesThroughALinkAndKeepsTheLink) {
  const TemporaryDirectory directory;
  fs::create_directory(directory / "there");
  fs::create_symlink("there/f", directory / "link");
  write_file_atomically(directory / "link", "one", false);
  EXPECT_TRUE(fs::is_symlink(directory / "link"));
  EXPECT_EQ(read_all(directory / "there/f"), "one");
  fs::create_symlink("loop", directory / "loop");
  expect_error(ErrorCode::kEnvironment, "symbolic links",
               [&] { write_file_atomically(directory / "loop", "x", true); });
}

TEST(WriteFileAtomically, TakesTheLongestNameAndALeftOverTemporary) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / std::string(255, 'n'), "x", false);
  directory.write(".f." + std::to_string(::getpid()) + ".tmp", "left by a process of the same id");
  write_file_atomically(directory / "f", "whole", false);
  EXPECT_EQ(read_all(directory / "f"), "whole");
  EXPECT_THAT(directory.names(), ElementsAre("f", std::string(255, 'n')));
}

TEST(WriteFileAtomically, KeepsTheOldFileWhenTheFileSizeLimitStrikes) {  // catalogue item 120
  const TemporaryDirectory directory;
  directory.write("f", "old");
  const int status = run_in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file_atomically(directory / "f", std::string(5000, 'x'), true);
    } catch (const Error& error) {
      return static_cast<int>(error.code());
    }
    return 0;
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 6);
  EXPECT_EQ(read_all(directory / "f"), "old");
  EXPECT_THAT(directory.names(), ElementsAre("f"));
}

TEST(WriteAt, NamesTheFileWhenTheDiskIsFull) {  // catalogue item 115
  const int full = ::open("/dev/full", O_WRONLY);
  const std::string text = "x";
  expect_error(ErrorCode::kEnvironment, "/dev/full: cannot write: No space left on device",
               [&] { write_at(full, "/dev/full", std::as_bytes(std::span(text)), 0); });
  ::close(full);
}

TEST(OutputLock, HoldsItsProcessIdAndGoesAway) {
  const TemporaryDirectory directory;
  {
    OutputLock first(directory / "out");
    const OutputLock lock(std::move(first));
    EXPECT_EQ(read_all(directory / "out.lock"), std::to_string(::getpid()) + "\n");
  }
  EXPECT_THAT(directory.names(), ElementsAre());
  const OutputLock off(directory / "out", false);
  EXPECT_THAT(directory.names(), ElementsAre());
}

TEST(OutputLock, RefusesASecondHolderAlsoThroughALink) {  // catalogue item 119
  const TemporaryDirectory directory;
  fs::create_symlink("out", directory / "link");
  const OutputLock lock(directory / "out");
  for (const char* name : {"out", "link"})
    expect_error(ErrorCode::kConflict, "process " + std::to_string(::getpid()),
                 [&] { OutputLock second(directory / name); });
  EXPECT_EQ(read_all(directory / "out.lock"), std::to_string(::getpid()) + "\n");
}

TEST(OutputLock, TakesOverFromADeadProcessAndRemovesOnlyItsTemporaries) {  // catalogue item 125
  const TemporaryDirectory directory;
  const std::string dead = std::to_string(dead_pid()), living = std::to_string(::getppid());
  directory.write("out.lock", dead + "\n");
  directory.write(".out." + dead + ".tmp", "");
  const std::set<std::string> kept{".out." + living + ".tmp", ".out.x.tmp", ".out..tmp", ".other." + dead + ".tmp"};
  for (const std::string& name : kept) directory.write(name, "");
  { const OutputLock lock(directory / "out"); }
  EXPECT_EQ(directory.names(), kept);
}

TEST(OutputLock, RemovesTemporariesOfAHolderThatHasEndedThoughItsIdIsStillKnown) {
  const TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) {
    const OutputLock lock(directory / "out");
    directory.write(".out." + std::to_string(::getpid()) + ".tmp", "");
    directory.write(".out.journal." + std::to_string(::getpid()) + ".tmp", "");
    ::raise(SIGKILL);
  }
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);  // it stays a zombie
  EXPECT_EQ(::kill(child, 0), 0);
  EXPECT_EQ(directory.names().size(), 3);
  { const OutputLock lock(directory / "out"); }
  EXPECT_THAT(directory.names(), ElementsAre());
  ::waitpid(child, nullptr, 0);
}

TEST(OutputLock, LeavesTemporariesOfALockedOutputWhoseNameBeginsAlike) {
  const TemporaryDirectory directory;
  const std::string dead = std::to_string(dead_pid());
  const OutputLock other(directory / "out.json");
  directory.write(".out.json." + dead + ".tmp", "");  // as another machine's process
  directory.write(".out.toml." + dead + ".tmp", "");
  { const OutputLock lock(directory / "out"); }
  EXPECT_THAT(directory.names(), ElementsAre(".out.json." + dead + ".tmp", "out.json.lock"));
}

TEST(OutputLock, LeavesAFileThatIsNoLockAlone) {
  const TemporaryDirectory directory;
  for (const char* text : {"[[package]]\n", "12", "12\n13\n"}) {
    directory.write("cargo.lock", text);
    expect_error(ErrorCode::kConflict, "no lock file", [&] { OutputLock lock(directory / "cargo"); });
    EXPECT_EQ(read_all(directory / "cargo.lock"), text);
  }
  fs::remove(directory / "cargo.lock");
  fs::create_symlink(directory.write("victim", ""), directory / "cargo.lock");
  expect_error(ErrorCode::kEnvironment, "lock file", [&] { OutputLock lock(directory / "cargo"); });
}

TEST(OutputLock, IsFreedByADeathWithoutCleanup) {
  const TemporaryDirectory directory;
  run_in_child([&] {
    OutputLock lock(directory / "out");
    return ::raise(SIGKILL);
  });
  ASSERT_THAT(directory.names(), ElementsAre("out.lock"));
  { const OutputLock lock(directory / "out"); }
  EXPECT_THAT(directory.names(), ElementsAre());
}

TEST(OutputLock, NeedsTheDirectory) {
  const TemporaryDirectory directory;
  expect_error(ErrorCode::kEnvironment, "No such file", [&] { OutputLock lock(directory / "none/out"); });
}

}  // namespace
}  // namespace kvs::test
