#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "io/json.h"

namespace kvs {

/// Running sums of a long calculation, saved so that it can go on after a kill with bit-identical results: the sums are
/// stored as they are and documents are added in order. The last two checkpoints are kept, beside the output (a link is
/// followed), as OUT.checkpoint.0 and .1; each is written atomically and closed by a CRC-32C.
class Checkpoint {
 public:
  struct State {
    std::uint64_t documents = 0;            // added to the sums so far
    std::vector<std::vector<double>> sums;  // in the order in which they were saved
    Json extra;                             // whatever else the calculation needs to go on
  };

  /// @param identity  what must be equal for a resume (cli's run_identity)
  Checkpoint(const std::filesystem::path& output, Json identity);

  /// The newest sound state. @param resume  go on with it; else a state that exists is a conflict unless `force` drops
  /// it.
  /// @throws Error kConflict (unfinished run without resume or force; another identity, listing the members that
  /// differ).
  std::optional<State> load(bool resume, bool force) const;
  /// True when so much time has passed since the last save that another costs less than a twentieth of it.
  bool due() const;
  void save(std::uint64_t documents, std::span<const std::span<const double>> sums, const Json& extra = {});
  /// Deletes both files, when the outputs are in place.
  void remove() const;

 private:
  std::filesystem::path files_[2];
  Json identity_;
  int next_ = 0;
  std::chrono::steady_clock::time_point saved_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration cost_{};
};

/// "member: stored X, now Y" for each member in which two identities differ; empty if none does.
std::string identity_differences(const Json& stored, const Json& now);

}  // namespace kvs
