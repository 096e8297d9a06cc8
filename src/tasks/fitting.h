#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "tasks/task.h"

namespace kvs {

/// Tokens of a prompt, BOS included.
std::size_t prompt_tokens(const TaskRequest& request, const TaskSample& sample);

/// Whether the prompt leaves room for its answer and for `room` tokens at least.
bool has_room(const TaskRequest& request, const TaskSample& sample, std::size_t room);

/// The largest size in [least, most] that `fits`, by bisection; `least` if none was found.
std::size_t largest_size(std::size_t least, std::size_t most, const std::function<bool(std::size_t)>& fits);

/// The most units of a text without end that `fits`, which none of them does; a token may have several units.
std::size_t max_units(std::size_t length, const std::function<bool(std::size_t)>& fits);

/// How RULER makes samples of a length: one search over sizes, in which every try draws, then one sample after another.
/// Source: NVIDIA/RULER, scripts/data/synthetic (Apache-2.0).
struct FittedTask {
  std::size_t step;                             // the least size, and what a sample that is too long is made smaller by
  std::size_t probe;                            // the size that tells how many tokens a unit has
  std::size_t (*most)(double units);            // that the search goes up to, of so many units to a length
  std::size_t answer_room;                      // tokens that stay free, more where answers have more; 0: none follow
  std::size_t search_room = 0;                  // and besides in the search
  std::function<TaskSample(std::size_t)> make;  // of so many units
  std::function<TaskSample(std::size_t)> finish;  // a sample that is kept
  // Where `step` units do not fit RULER tries for ever.
  bool any_size = false;        // here steps are shorter
  bool takes_smallest = false;  // here a sample of `step` units is longer
};
/// @throws Error kUsage where nothing fits.
std::vector<TaskSample> fitted_samples(const TaskRequest& request, const FittedTask& task);

/// @throws Error kUsage: a length without room for the task.
[[noreturn]] void refuse_length(std::size_t length);

}  // namespace kvs
