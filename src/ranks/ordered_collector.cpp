// SPDX-License-Identifier: Apache-2.0
#include "ranks/ordered_collector.h"

#include <chrono>
#include <utility>

namespace kvs::inline ranks {

OrderedCollector::OrderedCollector(std::size_t first, Ranks::Take take, std::function<void()> check)
    : take_(std::move(take)), check_(std::move(check)), next_(first), thread_([this] { work(); }) {}

OrderedCollector::~OrderedCollector() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool OrderedCollector::fits(std::size_t unit, std::size_t bytes) const {
  return unit == next_ || bytes_ + bytes <= Ranks::kMaxHeldBytes;
}

bool OrderedCollector::has_room(std::size_t unit, std::size_t bytes) const {
  const std::scoped_lock lock(mutex_);
  return fits(unit, bytes);
}

void OrderedCollector::wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done) {
  constexpr std::chrono::milliseconds kPause{50};
  while (!failure_ && !changed_.wait_for(lock, kPause, [&] { return failure_ || done(); })) {
    lock.unlock();
    if (check_) check_();
    lock.lock();
  }
  if (failure_) std::rethrow_exception(failure_);
}

void OrderedCollector::push(std::size_t unit, std::size_t bytes, PendingResult result) {
  {
    std::unique_lock lock(mutex_);
    wait(lock, [&] { return fits(unit, bytes); });
  }
  give(unit, bytes, std::move(result));
}

void OrderedCollector::give(std::size_t unit, std::size_t bytes, PendingResult result) {
  {
    const std::scoped_lock lock(mutex_);
    held_.emplace(unit, Held{bytes, std::move(result)});
    bytes_ += bytes;
  }
  changed_.notify_all();
}

void OrderedCollector::finish(std::size_t last) {
  std::unique_lock lock(mutex_);
  wait(lock, [&] { return next_ >= last; });
}

std::size_t OrderedCollector::next() const {
  const std::scoped_lock lock(mutex_);
  return next_;
}

void OrderedCollector::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || held_.contains(next_); });
    const auto at = held_.find(next_);
    if (at == held_.end()) return;
    const Held held = std::move(at->second);
    held_.erase(at);
    lock.unlock();
    try {
      take_(next_, held.result());
    } catch (...) {
      lock.lock();
      failure_ = std::current_exception();
      changed_.notify_all();
      return;
    }
    lock.lock();
    bytes_ -= held.bytes;
    ++next_;
    changed_.notify_all();
  }
}

}  // namespace kvs::inline ranks
