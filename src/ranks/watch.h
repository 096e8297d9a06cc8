#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ranks/launch.h"

namespace kvs {

/// Forks. The child goes on as this rank; the parent waits for it and, should a signal kill it or MPI end it, says
/// which rank on which host died at which document, and ends with status 6. Should the parent be killed, the child says
/// so and ends. Returns in the child alone. To be called before there are threads.
void watch_rank(std::string_view program, const Launch& launch);

/// What this rank computes now, for the watching parent. Without one nothing happens.
void note_document(std::uint64_t document) noexcept;

}  // namespace kvs
