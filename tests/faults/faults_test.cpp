// Every command, with one system call that fails, is cut short or kills it: it ends with a status and one line, keeps
// what was there, and a second run makes the bytes of one that nothing befell.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "io/json.h"
#include "tests/faults/commands.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;

const std::string kCalls[] = {"open", "write", "fsync", "rename", "unlink", "truncate", "mmap", "thread", "new"};

constexpr const char* kKept[] = {".lock", ".checkpoint", ".journal"};

/// What befalls a call.
struct Fault {
  const char *name, *with;
  bool harmless = false;  // a program goes on
};

std::vector<Fault> faults_of(const std::string& call) {
  static const std::string kNoSpace = std::to_string(ENOSPC), kBroken = std::to_string(EIO),
                           kInterrupted = std::to_string(EINTR), kMany = std::to_string(EMFILE),
                           kAgain = std::to_string(EAGAIN), kMemory = std::to_string(ENOMEM);
  const Fault killed{"SIGKILL", "kill"};
  if (call == "open") return {{"EMFILE", kMany.c_str()}, {"EINTR", kInterrupted.c_str()}, killed};
  if (call == "write")
    return {{"ENOSPC", kNoSpace.c_str()}, {"EINTR", kInterrupted.c_str(), true}, {"short", "short", true}, killed};
  if (call == "thread") return {{"EAGAIN", kAgain.c_str()}};
  if (call == "mmap" || call == "new") return {{"ENOMEM", kMemory.c_str()}};
  return {{"EIO", kBroken.c_str()}, killed};
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

/// Calls from 1 to `count`: all, every hundredth of new; or the last and one before it, none of new.
std::set<std::size_t> places(const std::string& call, std::size_t count, std::mt19937& random) {
  std::set<std::size_t> chosen;
  const bool all = tries_all(), many = call == "new";
  for (std::size_t at = 1; all && at <= count; at += many ? 100 : 1) chosen.insert(at);
  if (all || many || count == 0) return chosen;
  return {count, 1 + random() % count};
}

class FaultsTest : public ::testing::TestWithParam<std::tuple<std::size_t, std::string>> {
 protected:
  static void SetUpTestSuite() {
    inputs_ = new TemporaryFolder();
    make_fault_inputs(*inputs_);
  }
  static void TearDownTestSuite() {
    delete inputs_;
    inputs_ = nullptr;
  }

  FaultsTest() : out_((root_ / "out").string()) {
    call_ = std::get<1>(GetParam());
    command_ = faulty_commands(*inputs_, out_, call_ == "thread" ? "2" : "1").at(std::get<0>(GetParam()));
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
    // Files of the model and of texts are read, those of `out` written: one folder holds both.
    const FaultSettings settings(fs::temp_directory_path() / "kvs-cli-", root_ / "count", call_, at, with);
    return run(command_.program, words);
  }
  /// Runs it again: over what is there, or from where it stopped, or anew. @return whether with --force
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
  std::size_t calls() const { return std::strtoul(slurp(root_ / "count").c_str(), nullptr, 10); }

  void expect_a_line(const Outcome& outcome) const {
    EXPECT_THAT(outcome.status, ::testing::AnyOf(3, 4, 5, 6, 7)) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.err.rfind(command_.program + ": error: ", 0), 0U) << outcome.err;
  }
  /// @param removed  whether what cannot be removed may stay: locks and what was kept for --resume
  void expect_same(const std::map<std::string, std::string>& clean, bool removed) const {
    auto found = contents_of(out_);
    if (!removed)
      std::erase_if(found, [](const auto& file) {
        return std::ranges::any_of(kKept, [&](const char* kept) { return file.first.find(kept) != std::string::npos; });
      });
    EXPECT_EQ(names_of(found), names_of(clean));
    for (const auto& [name, bytes] : found)
      EXPECT_TRUE(command_.varies || !clean.contains(name) || bytes == clean.at(name)) << name << ": other bytes";
  }
  /// Each output that was there is the old one or the new one.
  void expect_whole(const std::map<std::string, std::string>& clean) const {
    for (const std::string& name : command_.outputs) {
      const std::string bytes = slurp(out_ + "/" + name);
      EXPECT_TRUE(bytes == "old" || (command_.varies ? Json::accept(bytes) : bytes == clean.at(name)))
          << name << ": " << bytes.size() << " bytes";
    }
  }

  inline static TemporaryFolder* inputs_ = nullptr;
  TemporaryFolder root_;
  std::string out_, call_;
  FaultyCommand command_;
};

TEST_P(FaultsTest, EndsWellAndIsMadeGood) {
  if (call_ == "new" && !tries_all()) GTEST_SKIP() << "of new with KVS_FAULTS=all";
  std::map<std::string, std::string> cleans[2];  // of a first run, and of one that replaces
  for (const bool over : {true, false}) {
    begin(over);
    const Outcome whole = start(0, "0", over && !command_.prints);
    ASSERT_EQ(whole.status, 0) << whole.err;
    cleans[over ? 1 : 0] = contents_of(out_);
  }
  const std::size_t count = calls();
  std::mt19937 random(static_cast<std::uint32_t>(count));
  bool replaces = false;
  int runs = 0;
  for (const Fault& fault : faults_of(call_))
    for (const std::size_t at : places(call_, count, random)) {
      SCOPED_TRACE(command_.name + ": " + call_ + " " + std::to_string(at) + " of " + std::to_string(count) + ", " +
                   fault.name + (replaces ? ", over old files" : ""));
      const auto& clean = cleans[replaces ? 1 : 0];
      begin(replaces);
      ++runs;
      const Outcome outcome = start(at, fault.with, replaces);
      if (fault.harmless) {
        EXPECT_EQ(outcome.status, 0) << outcome.err;
      }
      if (outcome.status == 0) {
        expect_same(clean, call_ != "unlink");
      } else {
        if (outcome.status != 1000 + SIGKILL) expect_a_line(outcome);
        if (replaces) expect_whole(clean);
        expect_same(cleans[repair(replaces) ? 1 : 0], true);
      }
      replaces = !replaces && !command_.outputs.empty();
      if (HasFailure()) break;
    }
  RecordProperty("runs", runs);
}

INSTANTIATE_TEST_SUITE_P(All, FaultsTest,
                         ::testing::Combine(::testing::Range<std::size_t>(0, faulty_command_count()),
                                            ::testing::ValuesIn(kCalls)),
                         [](const auto& of) {
                           return name_of_faulty_command(std::get<0>(of.param)) + "_" + std::get<1>(of.param);
                         });

}  // namespace
}  // namespace kvs::testing
