// SPDX-License-Identifier: Apache-2.0
#include "turns/turns.h"

#include <cxxabi.h>

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "turns/stack_switch.h"

namespace kvs::inline turns {
namespace {

/// Ends a call that is no longer needed.
struct Cancelled {};

/// The exceptions that a stack handles, which the C++ runtime keeps for each thread (Itanium C++ ABI, 2.2.2).
struct HandledExceptions {
  void* caught = nullptr;
  unsigned int uncaught = 0;

  static HandledExceptions& of_thread() { return *reinterpret_cast<HandledExceptions*>(abi::__cxa_get_globals()); }
};

struct Place {
  const void* resource = nullptr;
  std::size_t index = 0;

  bool operator==(const Place&) const = default;
};

struct Call {
  enum class State : std::uint8_t { kNew, kAtPlace, kUntilReady, kEnded };

  State state = State::kNew;
  boost::context::fiber fiber = {};
  SwitchedStack stack = {};
  Place place = {};                              // that it waits for
  const std::function<bool()>* ready = nullptr;  // that it waits for
  HandledExceptions handled = {};
  std::exception_ptr failure = {};
  double seconds = 0;  // that it has run, until it last gave way
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class Turns {
 public:
  using Work = std::function<void(std::size_t)>;

  Turns(std::size_t count, const Work& work) : work_(&work), calls_(count) {}
  ~Turns() { cancel(); }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  void run(const Work& ended) {
    for (std::size_t done = 0; done < calls_.size();) {
      resume(next_call());
      for (; done < calls_.size() && calls_[done].state == Call::State::kEnded; ++done) {
        if (calls_[done].failure) std::rethrow_exception(calls_[done].failure);
        ended(done);
      }
    }
  }

  void wait_for(Place place) {
    if (place == current_) return;
    calls_[running_].place = place;
    suspend(Call::State::kAtPlace);
  }
  void wait_until(const std::function<bool()>& ready) {
    if (ready()) return;
    calls_[running_].ready = &ready;
    suspend(Call::State::kUntilReady);
  }
  double seconds() const { return calls_[running_].seconds + now() - resumed_; }

 private:
  /// Returns the call that goes on: a new one, one whose condition has become true, or one at the current place. If
  /// there is none, the current place changes. Calls after a failed one do not go on.
  std::size_t next_call() {
    const auto failed = std::ranges::find_if(calls_, [](const Call& call) { return call.failure != nullptr; });
    const auto first = [&](auto may_go_on) {
      return static_cast<std::size_t>(std::find_if(calls_.begin(), failed, may_go_on) - calls_.begin());
    };
    const auto limit = static_cast<std::size_t>(failed - calls_.begin());
    const auto can_go_on = [&](const Call& call) {
      return call.state == Call::State::kNew || (call.state == Call::State::kUntilReady && (*call.ready)());
    };
    const auto is_at_place = [&](const Call& call) {
      return call.state == Call::State::kAtPlace && call.place == current_;
    };
    if (const std::size_t call = first(can_go_on); call < limit) return call;
    if (const std::size_t call = first(is_at_place); call < limit) return call;
    current_ = next_place(limit);
    return first(is_at_place);
  }

  Place next_place(std::size_t limit) const {
    std::optional<Place> above, lowest;
    for (std::size_t n = 0; n < limit; ++n) {
      if (calls_[n].state != Call::State::kAtPlace) continue;
      const Place& place = calls_[n].place;
      if (!lowest || place.index < lowest->index) lowest = place;
      const bool is_above = place.resource == current_.resource && place.index > current_.index;
      if (is_above && (!above || place.index < above->index)) above = place;
    }
    if (!lowest) throw Error(ErrorCode::kInternal, "run_in_turns", "the calls wait for each other");
    return above ? *above : *lowest;
  }

  void resume(std::size_t n) {
    Call& call = calls_[n];
    running_ = n;
    if (call.state == Call::State::kNew) call.fiber = make_fiber(call);
    resumed_ = now();
    std::swap(HandledExceptions::of_thread(), call.handled);
    call.stack.enter();
    call.fiber = std::move(call.fiber).resume();
    call.stack.leave();
    std::swap(HandledExceptions::of_thread(), call.handled);
    call.seconds += now() - resumed_;
  }

  boost::context::fiber make_fiber(Call& call) {
    return {std::allocator_arg, call.stack.allocator(kStackBytes), [this, &call](boost::context::fiber&& from) {
              call.stack.begin();
              scheduler_ = std::move(from);
              try {
                (*work_)(static_cast<std::size_t>(&call - calls_.data()));
              } catch (...) {
                call.failure = std::current_exception();
              }
              call.state = Call::State::kEnded;
              call.stack.end();
              return std::move(scheduler_);
            }};
  }

  void suspend(Call::State state) {
    Call& call = calls_[running_];
    call.state = state;
    call.stack.give_way();
    scheduler_ = std::move(scheduler_).resume();
    call.stack.go_on();
    if (cancelled_) throw Cancelled();
  }

  /// Ends the calls that have begun, so that their stacks are unwound.
  void cancel() noexcept {
    cancelled_ = true;
    for (std::size_t n = 0; n < calls_.size(); ++n)
      while (calls_[n].state != Call::State::kEnded && calls_[n].state != Call::State::kNew) resume(n);
  }

  const Work* work_;
  std::vector<Call> calls_;
  boost::context::fiber scheduler_;
  Place current_ = {};
  std::size_t running_ = 0;
  double resumed_ = 0;  // when `running_` last went on
  bool cancelled_ = false;
};

thread_local Turns* turns_of_thread = nullptr;

/// Makes `turns` those of the thread while it exists.
class Entered {
 public:
  explicit Entered(Turns& turns) { turns_of_thread = &turns; }
  ~Entered() { turns_of_thread = nullptr; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
};

}  // namespace

void run_in_turns(std::size_t count, const std::function<void(std::size_t)>& work,
                  const std::function<void(std::size_t)>& ended) {
  if (count > 1 && turns_of_thread == nullptr) {
    Turns turns(count, work);
    const Entered entered(turns);
    return turns.run(ended);
  }
  for (std::size_t n = 0; n < count; ++n) {
    work(n);
    ended(n);
  }
}

void run_in_groups(std::size_t first, std::size_t last, std::size_t together,
                   const std::function<void(std::size_t)>& work, const std::function<void(std::size_t)>& ended) {
  for (; first < last; first += std::min(together, last - first))
    run_in_turns(
        std::min(together, last - first), [&](std::size_t n) { work(first + n); },
        [&](std::size_t n) { ended(first + n); });
}

void wait_for_place(const void* resource, std::size_t place) {
  if (turns_of_thread != nullptr) turns_of_thread->wait_for({resource, place});
}

void wait_until(const std::function<bool()>& ready) {
  if (turns_of_thread != nullptr) return turns_of_thread->wait_until(ready);
  if (!ready()) throw Error(ErrorCode::kInternal, "wait_until", "nothing else runs that could make it ready");
}

double turn_seconds() { return turns_of_thread != nullptr ? turns_of_thread->seconds() : now(); }

}  // namespace kvs::inline turns
