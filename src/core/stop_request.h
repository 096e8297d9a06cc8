#pragma once

namespace kvs {

/// Asks this process to stop at its next safe point, as SIGTERM would (core/interrupt.h). Any thread may.
void request_stop() noexcept;

}  // namespace kvs
