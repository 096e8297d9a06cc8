#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "ranks/ranks.h"

namespace kvs {

/// Takes results in the order of their units, on a thread of its own, as they come in any order.
class OrderedCollector {
 public:
  /// @param check  is called now and then by those who wait here, and may throw
  OrderedCollector(std::size_t first, Ranks::Take take, std::function<void()> check = {});
  /// Takes what has come of the next units; the rest is dropped.
  ~OrderedCollector();
  OrderedCollector(const OrderedCollector&) = delete;
  OrderedCollector& operator=(const OrderedCollector&) = delete;

  /// Whether a result of so many bytes may come: it is the next one, or there is room for it.
  bool has_room(std::size_t unit, std::size_t bytes) const;
  /// Waits until there is room. @throws what `take` or a pending result has thrown
  void push(std::size_t unit, std::size_t bytes, PendingResult result);
  /// The same without waiting or throwing, for room that was asked for.
  void give(std::size_t unit, std::size_t bytes, PendingResult result);
  /// Waits until all units below `last` are taken. @throws what `take` or a pending result has thrown
  void finish(std::size_t last);
  /// The first unit that is not taken.
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

}  // namespace kvs
