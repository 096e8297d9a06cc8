// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "ranks/ranks.h"

namespace kvs::inline ranks {

/// Accepts results in any order and passes them on in the order of their units, on its own thread.
class OrderedCollector {
 public:
  /// @param check  called from time to time by threads that wait here; may throw
  OrderedCollector(std::size_t first, Ranks::Take take, std::function<void()> check = {});
  /// Passes on the results that are next in order and present; drops the rest.
  ~OrderedCollector();
  OrderedCollector(const OrderedCollector&) = delete;
  OrderedCollector& operator=(const OrderedCollector&) = delete;

  /// Returns true if a result of `bytes` bytes may be given now: it is the next one, or there is room for it.
  bool has_room(std::size_t unit, std::size_t bytes) const;
  /// Waits until there is room. @throws what `take` or a pending result has thrown
  void push(std::size_t unit, std::size_t bytes, PendingResult result);
  /// Like push(), but neither waits nor throws; for results whose room was checked with has_room().
  void give(std::size_t unit, std::size_t bytes, PendingResult result);
  /// Waits until all units below `last` are taken. @throws what `take` or a pending result has thrown
  void finish(std::size_t last);
  /// Returns the first unit that is not taken.
  std::size_t next() const;

 private:
  struct Held {
    std::size_t bytes;
    PendingResult result;
  };
  void work();
  bool fits(std::size_t unit, std::size_t bytes) const;
  void wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done);

  Ranks::Take take_;
  std::function<void()> check_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, Held> held_;
  std::size_t next_, bytes_ = 0;
  bool ending_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace kvs::inline ranks
