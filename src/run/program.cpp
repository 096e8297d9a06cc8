// SPDX-License-Identifier: Apache-2.0
#include "run/program.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <iostream>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/nearest.h"
#include "core/old_names.h"
#include "options/shell_files.h"
#include "run/environment.h"
#include "run/exit_report.h"
#include "run/kept_state.h"
#include "run/program_ranks.h"
#include "run/progress.h"
#include "version.h"

namespace kvs::inline run {
namespace {

/// Returns the program that has the other commands.
const char* other_program(std::string_view program) { return program == "kvspectrum" ? "kvcalibrate" : "kvspectrum"; }

constexpr std::size_t kPurposeColumn = 14;

void print_help(std::string_view program, std::string_view purpose, std::span<const Subcommand> commands) {
  if (!program_launch().is_root()) return;
  std::cout << program << ' ' << kToolVersion << ": " << purpose << "\n\nUsage: " << program
            << " COMMAND [options]\n\nCommands:\n";
  for (const Subcommand& command : commands)
    std::cout << "  " << command.name
              << std::string(kPurposeColumn - std::min(kPurposeColumn - 1, command.name.size()), ' ')
              << command.options().purpose() << '\n';
  std::cout << "\n`" << program << " COMMAND --help` lists a command's options with examples.\n`" << program
            << " completion bash|zsh|fish` prints a completion script, `" << program << " manual` a manual page.\n`"
            << other_program(program) << " --help` lists the commands of the other program.\n";
}

/// Prints a completion script or the manual page.
void print_shell_file(std::string_view program, std::string_view purpose, std::span<const Subcommand> commands,
                      const std::vector<std::string>& words) {
  const bool is_manual = words[0] == "manual";
  if (words.size() != (is_manual ? 1 : 2))
    throw Error(ErrorCode::kUsage, std::string(program) + ' ' + words[0],
                "found " + std::to_string(words.size() - 1) + " arguments, expected " +
                    (is_manual ? "none" : "one of bash, zsh, fish"));
  if (!program_launch().is_root()) return;
  ProgramText text{std::string(program), std::string(purpose), kToolVersion, {}};
  for (const Subcommand& command : commands) text.commands.emplace_back(command.name, command.options().text());
  std::cout << (is_manual ? manual_page(text) : completion_script(text, words[1]));
}

void run_command(std::string_view program, const Subcommand& command, Arguments arguments) {
  const std::size_t ranks = program_launch().size;
  if (ranks > 1 && !command.shared)
    throw Error(ErrorCode::kUnsupported, std::string(program) + ' ' + std::string(command.name),
                "found " + std::to_string(ranks) + " ranks, expected one process: they do not share its work");
  join_ranks(program);
  if (const auto options = command.options().parse(arguments, std::cout)) command.run(*options);
  program_ranks().finish();
}

void run(std::string_view program, std::string_view purpose, std::span<const Subcommand> commands,
         const std::vector<std::string>& words) {
  if (words.empty())
    throw Error(ErrorCode::kUsage, program, "found no command; see " + std::string(program) + " --help");
  if (is_help(words[0]) || words[0] == "help") return print_help(program, purpose, commands);
  if (words[0] == "--version") {
    if (!program_launch().is_root()) return;
    std::cout << program << ' ' << kToolVersion << '\n';
    return;
  }
  if (words[0] == "completion" || words[0] == "manual")
    return asks_for_help(words) ? print_help(program, purpose, commands)
                                : print_shell_file(program, purpose, commands, words);
  for (const Subcommand& command : commands)
    if (command.name == words[0]) return run_command(program, command, std::span(words).subspan(1));
  std::vector<std::string> names;
  for (const Subcommand& command : commands) names.emplace_back(command.name);
  std::string hint = did_you_mean(words[0], names);
  if (hint.empty()) hint = std::string("; `") + other_program(program) + " --help` lists other commands";
  throw Error(ErrorCode::kUsage, program, "found command '" + words[0] + "', expected one of " + listed(names) + hint);
}

/// Opens descriptors 0 to 2 if the caller has closed them. Otherwise the next opened file, such as a capture, would
/// take their place and receive messages. They are read-only, so that a write to a closed standard output still fails.
void occupy_standard_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) == -1) ::open("/dev/null", O_RDONLY);
}

void clean_up(ErrorCode code) noexcept {
  try {
    discard_hopeless_state(code);
  } catch (const std::exception&) {  // another process has the output now, or the files cannot be deleted
  }
}

/// Returns the cause of an interruption on rank 0: another rank's error, or the interruption itself.
std::exception_ptr cause_of(const std::exception_ptr& failure) noexcept {
  try {
    program_ranks().check();
  } catch (const Error&) {
    return std::current_exception();
  } catch (const std::exception&) {
  }
  return failure;
}

/// Returns true if standard output has no reader any more, such as a pipe to `head`.
bool is_output_closed() noexcept {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

/// @throws Error kEnvironment unless all output has been written; for --help, a closed reader is no error.
void finish_output(const std::vector<std::string>& words) {
  std::cout.flush();
  if (std::cout) return;
  const bool help = !words.empty() && (asks_for_help(words) || words[0] == "help" || words[0] == "--version");
  if (!help || !is_output_closed())
    throw Error(ErrorCode::kEnvironment, "standard output", "cannot be written to (closed or full)");
}

void print_old_names(const std::vector<std::string>& words) {
  const bool is_quiet = !program_launch().is_root() || std::ranges::find(words, "--quiet") != words.end();
  for (const std::string& note : old_name_notes()) print_note("note: " + note, is_quiet);
}

/// Reports the error that ends the program, once for all ranks.  @return the exit status
int end_after(std::string_view program, const std::exception_ptr& failure) noexcept {
  if (!program_launch().is_root()) return report_to_rank_0(program, failure);
  try {
    std::rethrow_exception(failure);
  } catch (const Interrupted&) {
    const std::exception_ptr cause = cause_of(failure);
    // The launcher ends several ranks mostly because one has died, and that rank has printed its line.
    if (cause == failure && !program_launch().alone()) return exit_report(failure).status;
    const int status = print_exit(program, cause);
    if (cause != failure) clean_up(static_cast<ErrorCode>(status));
    return status;
  } catch (...) {
    const int status = print_exit(program, failure);
    clean_up(static_cast<ErrorCode>(status));
    return status;
  }
}

}  // namespace

int run_program(std::string_view program, std::string_view purpose, std::span<const Subcommand> commands, int argc,
                char** argv) noexcept {
  try {
    settle_environment();
    occupy_standard_descriptors();
    install_signal_handlers();
    install_exit_reports(program);
    const std::vector<std::string> words{argv + std::min(argc, 1), argv + argc};
    run(program, purpose, commands, words);
    print_old_names(words);
    finish_output(words);
    return 0;
  } catch (...) {
    return end_after(program, std::current_exception());
  }
}

}  // namespace kvs::inline run
