#pragma once

#include <cstddef>
#include <memory>

#include "io/journal.h"
#include "io/record.h"
#include "ranks/one_process.h"
#include "ranks/ranks.h"

namespace kvs {

/// The seconds that a record says its work took.
inline double record_seconds(const JsonCursor& record) {
  const double seconds = record_real(record.at("seconds"));
  if (seconds < 0) record.at("seconds").fail("seconds");
  return seconds;
}

/// The steps of a run in their order. Those that its journal holds are told again instead of being done. Of several
/// ranks rank 0 has the records, and says what follows from them.
class RunRecords {
 public:
  /// @param journal  nullptr: nothing is kept
  /// @param ranks    that share the steps; nullptr: this process does all
  explicit RunRecords(Journal* journal, Ranks* ranks = nullptr)
      : journal_(journal), alone_(make_one_process()), ranks_(ranks == nullptr ? alone_.get() : ranks) {}

  Ranks& ranks() const noexcept { return *ranks_; }

  /// Whether next() has a record of the run before.
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
  /// What the records that were told again took when they were made.
  double replayed_seconds() const noexcept { return replayed_seconds_; }

 private:
  Journal* journal_;
  std::unique_ptr<Ranks> alone_;
  Ranks* ranks_;
  std::size_t next_ = 0;
  double replayed_seconds_ = 0;
};

}  // namespace kvs
