// SPDX-License-Identifier: Apache-2.0
// Kills, full disks and file size limits: whatever happens to a writer, a resumed capture is byte-identical to one that
// was never interrupted.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <random>

#include "tests/io/capture_fixture.h"

namespace kvs {
namespace {

namespace fs = std::filesystem;
using namespace test;
using testing::ElementsAre;

constexpr int kFailed = 99;

/// Returns the exit status of `act` run in a child: 0, the code of the Error that it threw, or kFailed.
int status_in_child(const std::function<void()>& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      act();
    } catch (const Error& error) {
      ::_exit(static_cast<int>(error.code()));
    } catch (...) {
      ::_exit(kFailed);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Runs `act` in a child that is killed at its `stops`-th entry into or return from a system call.
/// @return true if it was killed, false if it ended before (which must then be with success)
bool kill_at_stop(int stops, const std::function<void()>& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    try {
      act();
    } catch (...) {
      ::_exit(kFailed);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  for (; WIFSTOPPED(status) && stops > 0; --stops) {
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
  }
  if (WIFEXITED(status)) {
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return false;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  return true;
}

class CaptureCrash : public testing::Test {
 protected:
  void SetUp() override {
    run_capture(reference_ / "out.h5", header_);
    bytes_ = read_all(reference_ / "out.h5");
    manifest_ = read_all(reference_ / "out.h5.manifest.json");
  }
  void expect_identical(const TemporaryDirectory& directory) const {
    EXPECT_EQ(read_all(directory / "out.h5") == bytes_, true) << "the resumed file differs";
    EXPECT_EQ(read_all(directory / "out.h5.manifest.json"), manifest_);
    EXPECT_THAT(directory.names(), ElementsAre("out.h5", "out.h5.manifest.json"));
  }

  const CaptureHeader header_ = small_header();
  TemporaryDirectory reference_;
  std::string bytes_, manifest_;
};

// A prime stride visits entries and returns alike. KVS_CRASH_STRIDE=1 kills at every system call (minutes).
TEST_F(CaptureCrash, ResumedFileIsIdenticalWhereverAKillStruck) {
  const char* const wanted = std::getenv("KVS_CRASH_STRIDE");
  const int stride = wanted != nullptr ? std::atoi(wanted) : 7;
  int kills = 0;
  for (int stop = 1;; stop += stride) {
    SCOPED_TRACE(stop);
    const TemporaryDirectory directory;
    const bool killed = kill_at_stop(stop, [&] { run_capture(directory / "out.h5", header_); });
    kills += killed ? 1 : 0;
    if (killed) {
      EXPECT_EQ(status_in_child([&] { run_capture(directory / "out.h5", header_, {.resume = true}); }), 0);
    }
    expect_identical(directory);
    if (!killed || HasFailure()) break;
  }
  EXPECT_GE(kills, 30);
}

TEST_F(CaptureCrash, SurvivesBeingKilledAgainAndAgain) {
  std::mt19937 random(5);
  int kills = 0;
  for (int run = 0; run < 3; ++run) {
    const TemporaryDirectory directory;
    // 40 to 339 stops: often too few to lay the file out or to commit a document, always enough in the end.
    while (kill_at_stop(40 + static_cast<int>(random() % 300),
                        [&] { run_capture(directory / "out.h5", header_, {.resume = true}); })) {
      ++kills;
      if (directory.names() == std::set<std::string>{"out.h5", "out.h5.manifest.json"}) break;
    }
    expect_identical(directory);
  }
  EXPECT_GE(kills, 5);
}

TEST_F(CaptureCrash, KilledReplacementLeavesTheOldFileOrTheNewOne) {
  const CaptureHeader old_header = small_header(DType::kF16, 1);
  const TemporaryDirectory old;
  run_capture(old / "out.h5", old_header);
  const std::string old_bytes = read_all(old / "out.h5");
  for (int stop = 60;; stop += 53) {
    SCOPED_TRACE(stop);
    const TemporaryDirectory directory;
    run_capture(directory / "out.h5", old_header);
    const bool killed = kill_at_stop(stop, [&] { run_capture(directory / "out.h5", header_, {.force = true}); });
    const std::string found = read_all(directory / "out.h5");
    EXPECT_TRUE(found == old_bytes || found == bytes_);
    if (found != bytes_) run_capture(directory / "out.h5", header_, {.force = true});
    EXPECT_EQ(read_all(directory / "out.h5") == bytes_, true);
    if (!killed || HasFailure()) break;
  }
}

TEST_F(CaptureCrash, FileSizeLimitIsAnErrorBeforeAnythingIsComputed) {
  for (const rlim_t limit : {rlim_t{0}, rlim_t{4096}, rlim_t{bytes_.size() / 2}, rlim_t{bytes_.size() - 1}}) {
    const TemporaryDirectory directory;
    const int status = status_in_child([&] {
      ::signal(SIGXFSZ, SIG_IGN);  // as the programs do
      const rlimit limits{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &limits);
      // Without a lock file, which could not be written either.
      CaptureWriter::open(directory / "out.h5", header_, test_identity(), {.lock = false});
    });
    EXPECT_EQ(status, static_cast<int>(ErrorCode::kEnvironment)) << limit;
    EXPECT_THAT(directory.names(), ElementsAre());
  }
}

/// A tmpfs of two megabytes; mounting needs root.
class SmallDisk {
 public:
  SmallDisk() { mounted_ = ::mount("tmpfs", directory_.path().c_str(), "tmpfs", 0, "size=2m") == 0; }
  ~SmallDisk() {
    if (mounted_) ::umount2(directory_.path().c_str(), MNT_DETACH);
  }
  bool is_mounted() const { return mounted_; }
  const TemporaryDirectory& directory() const { return directory_; }
  /// Leaves `pages` pages of 4096 bytes free.
  void fill_up(std::uint64_t pages) const {
    struct statvfs status {};
    ::statvfs(directory_.path().c_str(), &status);
    const int file = ::open((directory_ / "filler").c_str(), O_WRONLY | O_CREAT, 0600);
    ASSERT_EQ(::posix_fallocate(file, 0, static_cast<off_t>((status.f_bavail - pages) * status.f_bsize)), 0);
    ::close(file);
  }

 private:
  TemporaryDirectory directory_;
  bool mounted_ = false;
};

TEST_F(CaptureCrash, FullDiskIsAnErrorWhereverItStrikesAndLosesNothing) {
  int at_open = 0, later = 0, never = 0;
  for (std::uint64_t pages = 0; never < 3; pages += pages < 80 ? 9 : 1) {
    SCOPED_TRACE(pages);
    const SmallDisk disk;
    if (!disk.is_mounted()) GTEST_SKIP() << "cannot mount a tmpfs (not root): the full disk was not tried";
    const TemporaryDirectory& directory = disk.directory();
    ASSERT_NO_FATAL_FAILURE(disk.fill_up(pages));
    const int status = status_in_child([&] { run_capture(directory / "out.h5", header_); });
    if (status == 0) {
      ++never;
    } else {
      EXPECT_EQ(status, static_cast<int>(ErrorCode::kEnvironment));
      // Either nothing is left, or a state to resume.
      if (directory.names() == std::set<std::string>{"filler"})
        ++at_open;
      else
        ++later;
      EXPECT_FALSE(fs::exists(directory / "out.h5"));
    }
    fs::remove(directory / "filler");
    if (status != 0) run_capture(directory / "out.h5", header_, {.resume = true});
    expect_identical(directory);
    ASSERT_LT(pages, 480U);
    if (HasFailure()) break;
  }
  EXPECT_GT(at_open, 3);
  RecordProperty("failed_later", later);
}

TEST_F(CaptureCrash, ClearsTemporariesAndLocksOfTheDead) {
  const TemporaryDirectory directory;
  // A process id above Linux's largest (2^22).
  directory.write(".out.h5.journal.4999999.tmp", "x");
  directory.write(".out.h5.manifest.json.4999999.tmp", "x");
  directory.write("out.h5.lock", "4999999\n");
  directory.write("out.h5.partial.new", "x");
  directory.write(".other.h5.journal.4999999.tmp", "mine");
  run_capture(directory / "out.h5", header_);
  EXPECT_THAT(directory.names(), ElementsAre(".other.h5.journal.4999999.tmp", "out.h5", "out.h5.manifest.json"));
}

}  // namespace
}  // namespace kvs
