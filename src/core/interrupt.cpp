// SPDX-License-Identifier: Apache-2.0
#include "core/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "core/error.h"
#include "core/stop_request.h"

namespace kvs::inline core {
namespace {

volatile std::sig_atomic_t g_signal = 0;
std::atomic<bool> g_stop = false;

extern "C" void note_signal(int signal) {
  if (g_signal != 0 && signal == SIGXCPU) return;  // SIGXCPU repeats every second
  if (g_signal != 0) _exit(128 + signal);
  g_signal = signal;
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) {
    struct sigaction callers {};
    sigaction(signal, nullptr, &callers);
    if (callers.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // nohup ignores SIGHUP: keep that
  }
  std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): cannot fail for these three
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
}

int pending_signal() noexcept { return static_cast<int>(g_signal); }

void request_stop() noexcept { g_stop = true; }

void check_interrupt() {
  if (g_stop) throw Interrupted(SIGTERM);
  if (g_signal != 0) throw Interrupted(static_cast<int>(g_signal));
}

}  // namespace kvs::inline core
