// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ranks/launch.h"

namespace kvs::inline ranks {

/// Forks. The child continues as this rank. The parent waits for the child. If a signal kills it or MPI ends it, the
/// parent prints which rank on which host died at which document and exits with status 6. If the parent is killed, the
/// child prints that and ends. Returns in the child only. Call before any thread starts.
void watch_rank(std::string_view program, const Launch& launch);

/// Records the document that this rank computes, for the watching parent. Does nothing without one.
void note_document(std::uint64_t document) noexcept;

}  // namespace kvs::inline ranks
