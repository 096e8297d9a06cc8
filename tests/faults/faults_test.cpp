// SPDX-License-Identifier: Apache-2.0
// Every command, with one system call that fails, is cut short or kills it. The command exits with a status and one
// line, keeps earlier files, and a second run makes the bytes of an undisturbed run.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "io/json.h"
#include "tests/faults/commands.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;

const std::string kCalls[] = {"open",  "read", "write", "fsync", "rename",  "unlink", "truncate", "allocate", "mmap",
                              "close", "stat", "mkdir", "flock", "process", "thread", "dlopen",   "new"};

constexpr const char* kKept[] = {".lock", ".checkpoint", ".journal"};

/// The fault of a call.
struct Fault {
  const char *name, *with;
  bool harmless = false;  // a program goes on
};

std::vector<Fault> faults_of(const std::string& call) {
  static const std::string kNoSpace = std::to_string(ENOSPC), kBroken = std::to_string(EIO),
                           kInterrupted = std::to_string(EINTR), kMany = std::to_string(EMFILE),
                           kAgain = std::to_string(EAGAIN), kMemory = std::to_string(ENOMEM),
                           kUnknown = std::to_string(EINVAL), kNoLocks = std::to_string(ENOLCK);
  const Fault killed{"SIGKILL", "kill"}, broken{"EIO", kBroken.c_str()}, full{"ENOSPC", kNoSpace.c_str()},
      interrupted{"EINTR", kInterrupted.c_str()}, goes_on{"EINTR", kInterrupted.c_str(), true},
      short_of{"short", "short", true};
  if (call == "open") return {{"EMFILE", kMany.c_str()}, interrupted, killed};
  if (call == "read") return {broken, goes_on, short_of};
  if (call == "write") return {full, goes_on, short_of, killed};
  if (call == "rename") return {broken, {"EINVAL", kUnknown.c_str()}, killed};  // no RENAME_NOREPLACE
  if (call == "allocate") return {full, killed};
  if (call == "mkdir") return {full, killed};
  if (call == "flock") return {{"ENOLCK", kNoLocks.c_str()}, goes_on, killed};
  if (call == "stat") return {broken};
  if (call == "process") return {{"EMFILE", kMany.c_str()}};
  if (call == "thread") return {{"EAGAIN", kAgain.c_str()}};
  if (call == "mmap" || call == "new" || call == "dlopen") return {{"ENOMEM", kMemory.c_str()}};
  return {broken, killed};
}

/// Environment variables of the next program.
class FaultSettings {
 public:
  FaultSettings(const std::string& folder, const std::string& count, const std::string& call, std::size_t at,
                const std::string& with) {
    set("LD_PRELOAD", KVS_FAULT_SHIM);
    set("KVS_FAULT_FOLDER", folder);
    set("KVS_FAULT_COUNT", count);
    set("KVS_FAULT_CALL", call);
    set("KVS_FAULT_AT", std::to_string(at));
    set("KVS_FAULT_WITH", with);
  }
  ~FaultSettings() {
    for (const std::string& name : names_) unsetenv(name.c_str());
  }
  FaultSettings(const FaultSettings&) = delete;
  FaultSettings& operator=(const FaultSettings&) = delete;

 private:
  void set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    names_.push_back(name);
  }
  std::vector<std::string> names_;
};

std::vector<std::string> names_of(const std::map<std::string, std::string>& files) {
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const auto& [name, bytes] : files) names.push_back(name);
  return names;
}

/// Calls from 1 to `count`: all, with every hundredth of new; or only one: the last for the first fault, and none of
/// new.
std::set<std::size_t> places(const std::string& call, std::size_t count, bool last, std::mt19937& random) {
  std::set<std::size_t> chosen;
  const bool all = tries_all(), many = call == "new";
  for (std::size_t at = 1; all && at <= count; at += many ? 100 : 1) chosen.insert(at);
  if (all || many || count == 0) return chosen;
  return {last ? count : 1 + random() % count};
}

/// The outputs of an undisturbed run.
struct Clean {
  std::map<std::string, std::string> files[2];  // of a first run, and of a run that replaces
  std::map<std::string, std::size_t> calls;
};

class FaultsTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  FaultsTest() : out_((root_ / "out").string()) {
    make_fault_inputs(inputs_);
    stand_in_for_pictures(root_ / "bin");
    setenv("PATH", ((root_ / "bin").string() + ":" + path_).c_str(), 1);
    setenv("OMP_WAIT_POLICY", "passive", 1);  // spinning threads would take all of a machine that others share
  }
  ~FaultsTest() override { setenv("PATH", path_.c_str(), 1); }

  /// A stand-in makes PNGs; the real program would take most of the time.
  static void stand_in_for_pictures(const fs::path& folder) {
    fs::create_directory(folder);
    std::ofstream(folder / "rsvg-convert") << "#!/bin/sh\nprintf '\\211PNG....IEND\\256B\\140\\202'\n";
    fs::permissions(folder / "rsvg-convert", fs::perms::owner_all);
  }

  void begin(bool replaces) const {
    fs::remove_all(out_);
    fs::create_directory(out_);
    for (const std::string& name : command_.outputs)
      if (replaces) std::ofstream(out_ + "/" + name) << "old";
  }
  Outcome start(std::size_t at, const std::string& with, bool replaces) const {
    std::vector<std::string> words = command_.arguments;
    if (replaces) words.emplace_back("--force");
    // Files of the model and of texts are read, files of `out` are written: folders of one name hold both.
    const FaultSettings settings(fs::temp_directory_path() / "kvs-cli-", root_ / "count", call_, at, with);
    return run(command_.program, words);
  }
  /// Runs it again: over the existing files, or from where it stopped, or from the start. @return whether with --force
  bool repair(bool replaces) const {
    std::vector<std::string> words = command_.arguments;
    if (replaces) words.emplace_back("--force");
    Outcome outcome = run(command_.program, words);
    if (outcome.status != 0 && !replaces) {
      replaces = !command_.resumes;
      words.emplace_back(replaces ? "--force" : "--resume");
      outcome = run(command_.program, words);
    }
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return replaces;
  }
  Clean clean_run() {
    Clean clean;
    for (const bool over : {true, false}) {
      begin(over);
      const Outcome whole = start(0, "0", over && !command_.prints);
      EXPECT_EQ(whole.status, 0) << whole.err;
      clean.files[over ? 1 : 0] = contents_of(out_);
    }
    std::istringstream counts(slurp(root_ / "count"));
    for (std::string call; counts >> call;) counts >> clean.calls[call];
    return clean;
  }
  /// One fault of one call.
  void try_one(const Fault& fault, std::size_t at, bool replaces, const Clean& clean) const {
    begin(replaces);
    const auto before = contents_of(out_);
    const Outcome outcome = start(at, fault.with, replaces);
    const bool killed = outcome.status == 1000 + SIGKILL;
    if (fault.harmless) {
      EXPECT_EQ(outcome.status, 0) << outcome.err;
    }
    if (outcome.status == 0) return expect_same(clean.files[replaces ? 1 : 0], call_ != "unlink");
    if (!killed) {
      expect_a_line(outcome);
      if (call_ != "unlink") expect_nothing_temporary();
    }
    if (contents_of(out_) == before) return;  // as if it had never run
    expect_whole(clean.files[replaces ? 1 : 0], replaces);
    expect_same(clean.files[repair(replaces) ? 1 : 0], true);
  }

  void expect_a_line(const Outcome& outcome) const {
    EXPECT_EQ(outcome.status, 6) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.err.rfind(command_.program + ": error: ", 0), 0U) << outcome.err;
  }
  /// @param removed  whether files that cannot be removed may stay: locks and the state for --resume. A PNG that could
  /// not be made is absent, not an older one.
  void expect_same(std::map<std::string, std::string> clean, bool removed) const {
    auto found = contents_of(out_);
    std::erase_if(clean, [&](const auto& file) { return file.first.ends_with(".png") && !found.contains(file.first); });
    if (!removed)
      std::erase_if(found, [](const auto& file) {
        return std::ranges::any_of(kKept, [&](const char* kept) { return file.first.find(kept) != std::string::npos; });
      });
    EXPECT_EQ(names_of(found), names_of(clean));
    for (const auto& [name, bytes] : found)
      EXPECT_TRUE(command_.varies || !clean.contains(name) || bytes == clean.at(name)) << name << ": other bytes";
  }
  void expect_nothing_temporary() const {
    for (const auto& [name, bytes] : contents_of(out_))
      EXPECT_FALSE(name.ends_with(".tmp") || name.ends_with(".lock")) << name << " is left";
  }
  /// Each output is the new one, or unchanged.
  void expect_whole(const std::map<std::string, std::string>& clean, bool replaces) const {
    for (const std::string& name : command_.outputs) {
      const bool there = fs::exists(out_ + "/" + name);
      const std::string bytes = slurp(out_ + "/" + name);
      const bool as_it_was = replaces ? bytes == "old" : !there;
      EXPECT_TRUE(as_it_was || (there && (command_.varies ? Json::accept(bytes) : bytes == clean.at(name))))
          << name << ": " << bytes.size() << " bytes";
    }
  }

  const std::string path_ = std::getenv("PATH");
  TemporaryFolder inputs_, root_;
  const std::string out_;
  std::string call_;
  FaultyCommand command_;
};

TEST_P(FaultsTest, EndsWellAndIsMadeGood) {
  const char* const only = std::getenv("KVS_FAULTS_OF");  // a call
  std::map<std::string, Clean> cleans;                    // by threads
  int runs = 0;
  for (const std::string& call : kCalls) {
    if (only != nullptr && call != only) continue;
    const std::string threads = call == "thread" ? "2" : "1";
    call_ = call;
    command_ = faulty_commands(inputs_, out_, threads).at(GetParam());
    if (!cleans.contains(threads)) {
      cleans[threads] = clean_run();
      ASSERT_FALSE(cleans[threads].calls.empty());
    }
    const Clean& clean = cleans[threads];
    const std::size_t count = clean.calls.at(call);
    std::mt19937 random(static_cast<std::uint32_t>(count));
    bool replaces = false, last = true;
    for (const Fault& fault : faults_of(call)) {
      for (const std::size_t at : places(call, count, last, random)) {
        SCOPED_TRACE(command_.name + ": " + call + " " + std::to_string(at) + " of " + std::to_string(count) + ", " +
                     fault.name + (replaces ? ", over old files" : ""));
        try_one(fault, at, replaces, clean);
        replaces = !replaces && !command_.outputs.empty();
        ++runs;
      }
      last = false;
    }
  }
  RecordProperty("runs", runs);
  std::cout << command_.name << ": " << runs << " runs\n";
}

INSTANTIATE_TEST_SUITE_P(All, FaultsTest, ::testing::Range<std::size_t>(0, faulty_command_count()),
                         [](const auto& of) { return name_of_faulty_command(of.param); });

}  // namespace
}  // namespace kvs::testing
