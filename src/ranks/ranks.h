#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/json.h"

namespace kvs {

/// What a unit of work gave: a record as a journal holds it, and sums that are too many for one.
struct UnitResult {
  Json record;
  std::vector<std::vector<double>> sums = {};
};

/// A result that may still be on its way, such as data on their way to the disk. Called once, perhaps by a thread.
using PendingResult = std::function<UnitResult()>;

/// Units first … last − 1 of a run: documents, mostly.
struct Units {
  std::size_t first = 0, last = 0;
  bool bound = false;  // unit n belongs to rank n mod size, which may have kept something of it; else to who is free
  std::size_t per_document = 1;  // consecutive units of one document: what messages name is the document
};

/// The processes that share a run, one of them in a run without mpirun. All of them go through the same command: they
/// call share(), broadcast() and gather() in the same order. Rank 0 owns outputs, journals and progress.
///
/// Results do not depend on the number of ranks: a unit is computed by one rank alone, and rank 0 takes the results one
/// after the other in the order of the units.
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

  /// Calls `compute` for every unit on one of the ranks and `take` on rank 0 in the order of units, which in a run of
  /// several ranks is on a thread of its own: the two must not write to the same things. Returns on rank 0 when all
  /// results are taken, on the others when no unit is left to hand out.
  /// Memory on rank 0: kMaxHeldBytes of results that wait for an earlier one, and two more.
  /// @throws what compute or take throws; on rank 0 also what ended another rank, an Error naming it
  void share(const Units& units, const Compute& compute, const Take& take);
  /// Like share(), for units whose results are late: the next unit starts before the last unit's result is asked for.
  void share_late(const Units& units, const Start& start, const Take& take) { run(units, start, take, true); }
  /// share() for results that every rank needs: [unit − first].
  std::vector<Json> share_with_all(const Units& units, const std::function<Json(std::size_t)>& compute,
                                   const std::function<void(std::size_t, const Json&)>& take = {});

  /// @param words  of rank 0; those of other ranks are ignored  @return the words of rank 0, on every rank
  virtual UnitResult broadcast(UnitResult words) = 0;
  Json broadcast(Json words) { return broadcast(UnitResult{std::move(words)}).record; }
  /// @return the words of every rank: [rank] on rank 0, empty on the others
  virtual std::vector<Json> gather(Json word) = 0;

  /// "rank 2 on HOST".
  virtual std::string name(std::size_t rank) const = 0;
  /// @throws Error on rank 0 if another rank has failed.
  virtual void check() const {}
  /// Ends this rank's part in the run: rank 0 learns of an error here, and says so.
  /// @param status  that the program would end with;  @param line  that it would print
  virtual void fail(int status, const std::string& line) noexcept = 0;
  /// The run is done: waits for rank 0, which waits for nobody.
  virtual void finish() = 0;

  static constexpr std::size_t kMaxHeldBytes = std::size_t{2} << 30;

 protected:
  /// @param late  results are asked for after the next unit has started
  virtual void run(const Units& units, const Start& start, const Take& take, bool late) = 0;
};

}  // namespace kvs
