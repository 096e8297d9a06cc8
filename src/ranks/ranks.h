// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/json.h"

namespace kvs::inline ranks {

/// The result of a unit of work: a record as a journal holds it, and sums that are too large for a record.
struct UnitResult {
  Json record;
  std::vector<std::vector<double>> sums = {};
};

/// A result that may not be complete yet (data may still be on their way to the disk). Called once, by any thread.
using PendingResult = std::function<UnitResult()>;

/// Units first … last − 1 of a run; a unit is usually a document.
struct Units {
  std::size_t first = 0, last = 0;
  bool bound = false;            // unit n belongs to rank n mod size, which may hold its state; else to any
  std::size_t per_document = 1;  // consecutive units of one document; messages name the document
  std::size_t together = 1;      // units that a run of one process computes in turns (turns/turns.h)
};

/// The processes that share a run; a run without mpirun has one. All of them execute the same command: they call
/// share(), broadcast() and gather() in the same order. Rank 0 owns outputs, journals and progress.
///
/// Results do not depend on the number of ranks: one rank computes a unit, and rank 0 takes the results one by one in
/// the order of the units.
class Ranks {
 public:
  using Compute = std::function<UnitResult(std::size_t unit)>;
  using Start = std::function<PendingResult(std::size_t unit)>;
  using Take = std::function<void(std::size_t unit, UnitResult result)>;

  virtual ~Ranks() = default;
  virtual std::size_t rank() const noexcept = 0;
  virtual std::size_t size() const noexcept = 0;
  bool is_root() const noexcept { return rank() == 0; }
  bool alone() const noexcept { return size() == 1; }

  /// Calls `compute` for every unit on one of the ranks, and `take` on rank 0 in the order of units. With several
  /// ranks, `take` runs on its own thread: the two must not write to the same objects. Returns on rank 0 when all
  /// results are taken, and on the other ranks when no unit is left.
  /// Memory on rank 0: kMaxHeldBytes of results that wait for an earlier one, and two more results.
  /// @throws what compute or take throws; on rank 0 also an Error that names the rank which failed
  void share(const Units& units, const Compute& compute, const Take& take);
  /// Like share(), for results that complete late: the next unit starts before the last unit's result is asked for.
  void share_late(const Units& units, const Start& start, const Take& take) { run(units, start, take, true); }
  /// Like share(), for results that every rank needs. @return [unit − first]
  std::vector<Json> share_with_all(const Units& units, const std::function<Json(std::size_t)>& compute,
                                   const std::function<void(std::size_t, const Json&)>& take = {});

  /// @param words  value on rank 0; ignored on other ranks  @return the value of rank 0, on every rank
  virtual UnitResult broadcast(UnitResult words) = 0;
  Json broadcast(Json words) { return broadcast(UnitResult{std::move(words)}).record; }
  /// @return the value of every rank: [rank] on rank 0, empty on the others
  virtual std::vector<Json> gather(Json word) = 0;

  /// Returns "rank 2 on HOST".
  virtual std::string name(std::size_t rank) const = 0;
  /// @throws Error on rank 0 if another rank has failed.
  virtual void check() const {}
  /// Ends this rank's part in the run and reports the error to rank 0.
  /// @param status  exit status of the program;  @param line  the error line
  virtual void fail(int status, const std::string& line) noexcept = 0;
  /// Ends the run. Ranks other than 0 wait for rank 0; rank 0 waits until all have finished.
  virtual void finish() = 0;

  static constexpr std::size_t kMaxHeldBytes = std::size_t{2} << 30;

 protected:
  /// @param late  results are asked for after the next unit has started
  virtual void run(const Units& units, const Start& start, const Take& take, bool late) = 0;
};

}  // namespace kvs::inline ranks
