// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "io/journal.h"
#include "io/record.h"
#include "ranks/one_process.h"
#include "ranks/ranks.h"

namespace kvs::inline compare {

/// Returns the seconds that the work of a record took.
inline double record_seconds(const JsonCursor& record) {
  const double seconds = record_real(record.at("seconds"));
  if (seconds < 0) record.at("seconds").fail("seconds");
  return seconds;
}

/// The steps of a run, in order. Steps in the journal are replayed instead of computed. With several ranks, rank 0
/// holds the records and broadcasts what follows from them.
class RunRecords {
 public:
  /// @param journal  nullptr: no steps are kept
  /// @param ranks    ranks that share the steps; nullptr: this process runs all steps
  explicit RunRecords(Journal* journal, Ranks* ranks = nullptr)
      : journal_(journal), alone_(make_one_process()), ranks_(ranks == nullptr ? alone_.get() : ranks) {}

  Ranks& ranks() const noexcept { return *ranks_; }

  /// Returns true if next() has a record of the earlier run.
  bool replays() const noexcept { return journal_ != nullptr && next_ < journal_->records().size(); }
  JsonCursor next() {
    JsonCursor record = journal_->record(next_++);
    if (record.has("seconds")) replayed_seconds_ += record_seconds(record);
    return record;
  }
  void keep(const Json& record) {
    if (journal_ == nullptr) return;
    journal_->append(record);
    ++next_;
  }
  /// Returns the seconds that the replayed records took when they were made.
  double replayed_seconds() const noexcept { return replayed_seconds_; }

 private:
  Journal* journal_;
  std::unique_ptr<Ranks> alone_;
  Ranks* ranks_;
  std::size_t next_ = 0;
  double replayed_seconds_ = 0;
};

}  // namespace kvs::inline compare
