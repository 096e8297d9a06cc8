// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kvs::inline core {

/// Asks this process to stop at its next safe point, as SIGTERM would (core/interrupt.h). Any thread may call it.
void request_stop() noexcept;

}  // namespace kvs::inline core
