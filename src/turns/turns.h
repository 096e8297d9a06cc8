// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace kvs::inline turns {

/// Runs work(0) … work(count − 1) on this thread, one at a time, each on its own stack. A call gives way to the others
/// in wait_for_place() and wait_until() only, so that all calls use a resource that holds one place at a time in the
/// same order. A model whose layers are read from disk is read once for all calls. Calls run_in_turns() of a call run
/// one after the other.
/// @param ended  called on this stack, in the order of the calls, as soon as a call and all before it have ended
/// @throws the exception of the first call that fails, after the calls before it have ended. The calls after it end by
/// an exception in wait_for_place() or wait_until(), or are not begun.
/// Memory: kStackBytes of address space for each call.
void run_in_turns(std::size_t count, const std::function<void(std::size_t)>& work,
                  const std::function<void(std::size_t)>& ended);

/// Like run_in_turns() for the calls first … last − 1, of which at most `together` (≥ 1) have begun and not ended.
void run_in_groups(std::size_t first, std::size_t last, std::size_t together,
                   const std::function<void(std::size_t)>& work, const std::function<void(std::size_t)>& ended);

/// Waits until no other call can go on at the current place, and `place` of `resource` is the next one of those that
/// calls wait for. This is the lowest place above the current one, else the lowest. Returns at once outside
/// run_in_turns().
void wait_for_place(const void* resource, std::size_t place);

/// Lets the other calls go on until ready() is true. Returns at once if it is.
/// @throws Error kInternal outside run_in_turns() if it is not
void wait_until(const std::function<bool()>& ready);

/// Returns the seconds of a clock that stops for a call while other calls go on. Outside run_in_turns() it never stops.
double turn_seconds();

inline constexpr std::size_t kStackBytes = std::size_t{4} << 20;

}  // namespace kvs::inline turns
