// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kvs::inline core {

/// Installs handlers for SIGINT, SIGTERM, SIGHUP and SIGXCPU (ulimit -t) that only record the signal. Signals that the
/// caller ignores (nohup) stay ignored. SIGPIPE and SIGXFSZ are ignored. A second SIGINT, SIGTERM or SIGHUP ends the
/// process at once with 128 + its number. SIGCHLD gets its default: a process that ignores it cannot wait for children.
void install_signal_handlers();

/// Returns the signal that asked this process to stop, or 0.
int pending_signal() noexcept;

/// Throws Interrupted if a signal is pending. Called at safe points: between layers, documents and search steps.
void check_interrupt();

}  // namespace kvs::inline core
