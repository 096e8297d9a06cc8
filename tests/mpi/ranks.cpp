// SPDX-License-Identifier: Apache-2.0
#include "tests/mpi/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <thread>

namespace kvs::testing {
namespace {

using Clock = std::chrono::steady_clock;

std::string path_of(const std::string& program) { return std::string(KVS_BINARY_DIR) + "/" + program; }

/// Processes of the executable `path` whose command line names `output`.
std::vector<pid_t> processes_at(const std::string& path, const std::string& output) {
  std::vector<pid_t> found;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    if (!std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; })) continue;
    const std::string words = slurp(entry.path() / "cmdline");
    if (words.starts_with(path + '\0') && words.find(output) != std::string::npos) found.push_back(std::stoi(name));
  }
  std::ranges::sort(found);
  return found;
}

/// The program's processes with this output on their command line, without mpirun.
std::vector<pid_t> processes_of(const std::string& program, const std::string& output) {
  return processes_at(path_of(program), output);
}

/// The server of PMIx 4.2 in mpirun waits at its end for a lock that it has freed, if a rank was killed at the instant
/// in which it connects (docs/scale.md). Then only mpirun is left of the run.
void end_stuck_mpirun(const std::string& program, const std::string& output, const std::atomic<bool>& over) {
  constexpr std::chrono::seconds kPatience{20};
  for (auto alone_since = Clock::now(); !over; std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
    if (!processes_of(program, output).empty()) alone_since = Clock::now();
    if (Clock::now() - alone_since < kPatience) continue;
    for (const pid_t process : processes_at(KVS_MPIRUN, output)) ::kill(process, SIGKILL);
    std::cout << "mpirun did not end after its ranks: killed\n";
    return;
  }
}

bool has_begun(const std::string& program, const Kill& kill) {
  if (kill.journal.empty()) return !processes_of(program, kill.output).empty();
  return std::ranges::count(slurp(kill.output.native() + kill.journal), '\n') > 1;
}

}  // namespace

Outcome run_ranks(int ranks, const std::string& program, const std::vector<std::string>& words) {
  std::vector<std::string> all{"--allow-run-as-root", "--oversubscribe", "-n", std::to_string(ranks), path_of(program)};
  all.insert(all.end(), words.begin(), words.end());
  return run(KVS_MPIRUN, all);
}

Outcome run_ranks(const std::string& program, const std::vector<Rank>& ranks) {
  std::vector<std::string> all{"--allow-run-as-root", "--oversubscribe"};
  for (const Rank& rank : ranks) {
    if (&rank != &ranks.front()) all.emplace_back(":");
    all.insert(all.end(), {"-n", "1"});
    all.insert(all.end(), rank.before.begin(), rank.before.end());
    all.push_back(path_of(program));
    all.insert(all.end(), rank.words.begin(), rank.words.end());
  }
  return run(KVS_MPIRUN, all);
}

Killed run_ranks_and_kill_one(int ranks, const std::string& program, const std::vector<std::string>& words,
                              const Kill& kill) {
  std::atomic<bool> over = false;
  Clock::time_point killed;
  std::thread killer([&] {
    while (!over && !has_begun(program, kill)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(kill.milliseconds));
    const auto processes = processes_of(program, kill.output);
    killed = Clock::now();
    if (!over && !processes.empty()) ::kill(processes[kill.victim % processes.size()], SIGKILL);
    end_stuck_mpirun(program, kill.output, over);
  });
  Outcome outcome = run_ranks(ranks, program, words);
  const auto end = Clock::now();
  over = true;
  killer.join();
  return {std::move(outcome), std::chrono::duration<double>(end - killed).count()};
}

void Ranks::SetUp() {
  if (!std::filesystem::exists(KVS_MPIRUN)) GTEST_SKIP() << "found no mpirun; scripts/setup.sh development installs it";
  write_tiny_model(folder_ / "model");
  write_texts(6);
  std::filesystem::create_directory(folder_ / "out");
}

std::vector<std::string> Ranks::words_of(const SharedCommand& command) const {
  std::vector<std::string> more = command.more;
  std::ranges::replace(more, std::string("OUT"), output_of(command).native());
  return with_text(command.command, more);
}

std::map<std::string, std::string> Ranks::outputs_after(const Outcome& outcome, const std::string& program) const {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(own_lines(outcome.err, program), ::testing::IsEmpty());
  auto files = contents_of(folder_ / "out");
  EXPECT_FALSE(files.empty());
  std::filesystem::remove_all(folder_ / "out");
  std::filesystem::create_directory(folder_ / "out");
  return files;
}

void Ranks::write_texts(std::size_t lines) const {
  constexpr std::size_t kLengths[] = {70, 33, 130, 64, 40, 200};
  std::ofstream file(folder_ / "tokens.jsonl");
  std::mt19937 random(5);
  for (std::size_t line = 0; line < lines; ++line) {
    file << '[';
    for (std::size_t n = 0; n < kLengths[line % std::size(kLengths)]; ++n) file << (n > 0 ? "," : "") << random() % 64;
    file << "]\n";
  }
}

std::vector<std::string> own_lines(const std::string& err, const std::string& program) {
  std::vector<std::string> lines;
  std::istringstream text(err);
  for (std::string line; std::getline(text, line);)
    if (line.starts_with(program + ": ")) lines.push_back(line);
  return lines;
}

}  // namespace kvs::testing
