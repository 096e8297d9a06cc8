#pragma once

namespace kvs {

/// Installs handlers for SIGINT, SIGTERM, SIGHUP and SIGXCPU (ulimit -t) that only note the signal, but for those that
/// the caller ignores (nohup), and ignores SIGPIPE and SIGXFSZ. A second signal of the first three ends the process at
/// once with 128 + its number. SIGCHLD is as usual: children of a process that ignores it cannot be waited for.
void install_signal_handlers();

/// The signal that asked this process to stop, or 0.
int pending_signal() noexcept;

/// A safe point: throws Interrupted if a signal is pending. Called between layers, documents and search steps.
void check_interrupt();

}  // namespace kvs
