// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "io/json.h"

namespace kvs::inline io {

/// Running sums of a long calculation, saved so that a killed run can resume with bit-identical results: the sums are
/// stored exactly and documents are added in order. The last two checkpoints are kept next to the output (links are
/// followed) as OUT.checkpoint.0 and .1. Each is written atomically and ends with a CRC-32C.
class Checkpoint {
 public:
  struct State {
    std::uint64_t documents = 0;            // documents added to the sums
    std::vector<std::vector<double>> sums;  // in the order in which they were saved
    Json extra;                             // other state that the calculation needs to continue
  };

  /// @param identity  must be equal for a resume (cli's run_identity)
  Checkpoint(const std::filesystem::path& output, Json identity);

  /// Returns the newest valid state.
  /// @param resume  continue from it; otherwise a state that exists is a conflict, unless `force` drops it
  /// @throws Error kConflict (unfinished run without resume or force; another identity, with the members that differ).
  std::optional<State> load(bool resume, bool force) const;
  /// Returns true if another save would cost less than a twentieth of the time since the last save.
  bool due() const;
  void save(std::uint64_t documents, std::span<const std::span<const double>> sums, const Json& extra = {});
  /// Deletes both files. Call it when the outputs are in place.
  void remove() const;

 private:
  std::filesystem::path files_[2];
  Json identity_;
  int next_ = 0;
  std::chrono::steady_clock::time_point saved_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration cost_{};
};

/// Returns "member: stored X, now Y" for each member that differs between two identities; empty if all are equal.
std::string identity_differences(const Json& stored, const Json& now);

}  // namespace kvs::inline io
