#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "io/journal.h"
#include "ranks/ranks.h"

namespace kvs {

/// Losses in the order in which a calibration measures them: counted, and kept by a journal, so that a run that goes on
/// gets those that are there without measuring them. Ranks share what is measured and all have the losses. What
/// decides which losses are measured, beside losses, is kept there, too.
class LossLog {
 public:
  using Done = std::function<void(std::size_t, std::size_t)>;
  /// The loss of item n.
  using Measure = std::function<double(std::size_t n)>;

  /// @param done     called with the losses so far and at most
  /// @param journal  or nullptr; of several ranks that of rank 0
  LossLog(Done done, std::size_t most, Journal* journal, Ranks& ranks);

  /// The losses of items, each by itself in the journal.
  std::vector<double> each(std::size_t items, const Measure& measure);
  /// The same of items that the journal holds together, each measured by the rank that measured it before.
  std::vector<double> together(std::size_t items, const Measure& measure);
  /// What rank 0 finds, or found before. @param find  called on every rank;  @param check  refuses what a record says
  Json kept(const std::function<Json(Ranks&)>& find, const std::function<void(const JsonCursor&)>& check);
  /// Losses of single documents so far.
  std::size_t measured() const noexcept { return measured_; }

 private:
  std::vector<double> shared(const Units& items, const Measure& measure, const std::function<void(const Json&)>& take);
  void count(std::size_t losses);
  /// The next record of the run before.
  JsonCursor replayed();

  Done done_;
  std::size_t most_, measured_ = 0, replayed_ = 0;
  Journal* journal_;
  Ranks* ranks_;
  std::string name_;          // of the journal
  std::vector<Json> before_;  // the journal's records when it was opened
};

}  // namespace kvs
