// SPDX-License-Identifier: Apache-2.0
#include "run/program_ranks.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "core/error.h"
#include "core/interrupt.h"
#include "ranks/follower.h"
#include "ranks/leader.h"
#include "ranks/mpi_library.h"
#include "ranks/one_process.h"
#include "ranks/watch.h"
#include "run/exit_report.h"

namespace kvs::inline run {
namespace {

std::unique_ptr<Ranks>& own_ranks() {
  static std::unique_ptr<Ranks> ranks = make_one_process();
  return ranks;
}

/// With launchers other than mpirun, ranks may survive the end of rank 0.
bool is_said_by_rank_0(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const ForeignLauncher&) {
    return true;
  } catch (...) {
    return false;
  }
}

void silence_standard_output() {
  const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nothing < 0 || ::dup2(nothing, STDOUT_FILENO) < 0)
    throw Error(ErrorCode::kEnvironment, "/dev/null", "cannot be opened");
  ::close(nothing);
}

}  // namespace

const Launch& program_launch() {
  static const Launch launch = launch_of_environment();
  return launch;
}

Ranks& program_ranks() { return *own_ranks(); }

void join_ranks(std::string_view program) {
  const Launch& launch = program_launch();
  if (launch.alone()) return;
  watch_rank(program, launch);
  if (!launch.is_root()) silence_standard_output();
  take_own_gpu(launch);
  if (launch.is_root())
    own_ranks() = make_leader([size = launch.size] { return open_mpi(true, size); });
  else
    own_ranks() = make_follower(open_mpi(false, launch.size));
}

int report_to_rank_0(std::string_view program, const std::exception_ptr& failure) noexcept {
  constexpr std::chrono::seconds kForRank0{3};  // rank 0 usually meets the same error, and its end is that of all ranks
  try {
    const ExitReport words = exit_report(failure);
    if (pending_signal() != 0 || is_said_by_rank_0(failure)) return words.status;
    if (!program_ranks().alone()) {
      program_ranks().fail(words.status, words.line);
      return words.status;
    }
    std::this_thread::sleep_for(kForRank0);
  } catch (const std::exception&) {  // no memory for the line
  }
  return print_exit(program, failure);
}

}  // namespace kvs::inline run
