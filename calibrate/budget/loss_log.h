// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "io/journal.h"
#include "ranks/ranks.h"

namespace kvs::inline calibrate {

/// Losses in the order in which a calibration measures them. They are counted and kept in a journal, so that a resumed
/// run does not measure them again. Ranks share the measurements, and all ranks have the losses. The journal also keeps
/// other data that determine which losses are measured.
class LossLog {
 public:
  using Done = std::function<void(std::size_t, std::size_t)>;
  /// Returns the loss of item n.
  using Measure = std::function<double(std::size_t n)>;

  /// @param done      called with the number of losses so far and their maximum
  /// @param journal   or nullptr; with several ranks, that of rank 0
  /// @param in_turns  number of measurements that run in turns (turns/turns.h)
  LossLog(Done done, std::size_t most, Journal* journal, Ranks& ranks, std::size_t in_turns = 1);

  /// Returns the losses of items, each with its own record in the journal.
  std::vector<double> each(std::size_t items, const Measure& measure);
  /// Returns the losses of items that share a record; each is measured by the rank that measured it before.
  std::vector<double> together(std::size_t items, const Measure& measure);
  /// Returns the result of rank 0, or the recorded one. @param find  called on every rank;  @param check  refuses an
  /// invalid record
  Json kept(const std::function<Json(Ranks&)>& find, const std::function<void(const JsonCursor&)>& check);
  /// Number of losses of single documents so far.
  std::size_t measured() const noexcept { return measured_; }

 private:
  std::vector<double> shared(Units items, const Measure& measure, const std::function<void(const Json&)>& take);
  void count(std::size_t losses);
  /// Returns the next record of the previous run.
  JsonCursor replayed();

  Done done_;
  std::size_t most_, measured_ = 0, replayed_ = 0;
  Journal* journal_;
  Ranks* ranks_;
  std::size_t in_turns_;
  std::string name_;          // of the journal
  std::vector<Json> before_;  // the journal's records when it was opened
};

}  // namespace kvs::inline calibrate
