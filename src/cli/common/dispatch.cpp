#include "cli/common/dispatch.h"

#include <fcntl.h>

#include <algorithm>
#include <exception>
#include <iostream>

#include "cli/common/last_words.h"
#include "cli/common/outputs.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "version.h"

namespace kvs {
namespace {

void print_help(std::string_view program, std::string_view purpose, std::span<const Subcommand> commands) {
  std::cout << program << ' ' << kToolVersion << ": " << purpose << "\n\nUsage: " << program
            << " COMMAND [options]\n\nCommands:\n";
  for (const Subcommand& command : commands)
    std::cout << "  " << command.name << std::string(12 - std::min<std::size_t>(11, command.name.size()), ' ')
              << command.summary << '\n';
  std::cout << "\n`" << program << " COMMAND --help` lists a command's options with examples.\n";
}

void run(std::string_view program, std::string_view purpose, std::span<const Subcommand> commands,
         const std::vector<std::string>& words) {
  if (words.empty())
    throw Error(ErrorCode::kUsage, program, "found no command; see " + std::string(program) + " --help");
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") return print_help(program, purpose, commands);
  if (words[0] == "--version") {
    std::cout << program << ' ' << kToolVersion << '\n';
    return;
  }
  for (const Subcommand& command : commands)
    if (command.name == words[0]) return command.run(std::span(words).subspan(1));
  std::string names;
  for (const Subcommand& command : commands) names += (names.empty() ? "" : ", ") + std::string(command.name);
  throw Error(ErrorCode::kUsage, program, "found command '" + words[0] + "', expected one of " + names);
}

/// A caller may close descriptors 0 to 2; the next file opened would take their place, and a message land in a capture.
/// Read-only: a write to a closed standard output still fails.
void occupy_standard_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) == -1) ::open("/dev/null", O_RDONLY);
}

void clean_up(ErrorCode code) noexcept {
  try {
    drop_hopeless_runs(code);
  } catch (const std::exception&) {  // another process has the output now, or the files cannot be deleted: they stay
  }
}

}  // namespace

int run_program(std::string_view program, std::string_view purpose, std::span<const Subcommand> commands, int argc,
                char** argv) noexcept {
  try {
    occupy_standard_descriptors();
    install_signal_handlers();
    install_last_words(program);
    run(program, purpose, commands, {argv + std::min(argc, 1), argv + argc});
    std::cout.flush();
    if (!std::cout) throw Error(ErrorCode::kEnvironment, "standard output", "cannot be written to (closed or full)");
    return 0;
  } catch (const Interrupted&) {
    return report(program, std::current_exception());
  } catch (...) {
    const int status = report(program, std::current_exception());
    clean_up(static_cast<ErrorCode>(status));
    return status;
  }
}

}  // namespace kvs
