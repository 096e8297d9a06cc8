#include "tests/mpi/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

namespace kvs::testing {
namespace {

std::vector<std::string> words_of(int ranks, const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"--allow-run-as-root", "--oversubscribe", "-n", std::to_string(ranks),
                                 std::string(KVS_BINARY_DIR) + "/" + program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

/// Processes of the program that were told to write `output`, mpirun left out.
std::vector<pid_t> processes_of(const std::string& program, const std::string& output) {
  std::vector<pid_t> found;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    if (!std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; })) continue;
    const std::string words = slurp(entry.path() / "cmdline");
    const std::string own = std::string(KVS_BINARY_DIR) + "/" + program + '\0';
    if (words.starts_with(own) && words.find(output) != std::string::npos) found.push_back(std::stoi(name));
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

Outcome run_ranks(int ranks, const std::string& program, const std::vector<std::string>& arguments) {
  return run(KVS_MPIRUN, words_of(ranks, program, arguments));
}

Outcome run_ranks_and_kill_one(int ranks, const std::string& program, const std::vector<std::string>& arguments,
                               const std::filesystem::path& output, const std::string& ending, unsigned victim,
                               int milliseconds) {
  std::atomic<bool> over = false;
  std::thread killer([&] {
    const std::filesystem::path state = output.string() + ending;
    const auto begun = [&] {
      const std::string lines = slurp(state);
      return std::ranges::count(lines, '\n') > 1;
    };
    while (!over && !begun()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    const auto processes = processes_of(program, output);
    if (!over && !processes.empty()) kill(processes[victim % processes.size()], SIGKILL);
  });
  const Outcome outcome = run_ranks(ranks, program, arguments);
  over = true;
  killer.join();
  return outcome;
}

void Ranks::SetUp() {
  if (!std::filesystem::exists(KVS_MPIRUN)) GTEST_SKIP() << "found no mpirun; scripts/setup.sh installs it";
  write_tiny_model(folder_ / "model");
  write_texts(6);
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
