// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "tasks/task.h"

namespace kvs::inline tasks {

/// Returns the number of tokens of a prompt, BOS included.
std::size_t prompt_tokens(const TaskRequest& request, const TaskSample& sample);

/// Returns true if the prompt leaves room for its answer and at least `room` tokens.
bool has_room(const TaskRequest& request, const TaskSample& sample, std::size_t room);

/// Returns the largest size in [least, most] that `fits`, by bisection; `least` if none fits.
std::size_t largest_size(std::size_t least, std::size_t most, const std::function<bool(std::size_t)>& fits);

/// Returns the largest number of units of an endless text that `fits`. A token may have several units.
std::size_t max_units(std::size_t length, const std::function<bool(std::size_t)>& fits);

/// How RULER makes samples of a length: one search over sizes, in which every try draws, then one sample after another.
/// Source: NVIDIA/RULER, scripts/data/synthetic (Apache-2.0).
struct FittedTask {
  std::size_t step;                   // smallest size; also the decrement for a sample that is too long
  std::size_t probe;                  // size from which the number of tokens per unit is estimated
  std::size_t (*most)(double units);  // upper limit of the search, for `units` units per length
  std::size_t answer_room;      // tokens reserved for the answer (more if the answers are longer); 0: no answer follows
  std::size_t search_room = 0;  // additional reserve during the search
  std::function<TaskSample(std::size_t)> make;    // makes a sample with that many units
  std::function<TaskSample(std::size_t)> finish;  // makes a sample that is kept
  // If `step` units do not fit, RULER tries without limit.
  bool any_size = false;        // uses shorter steps instead
  bool takes_smallest = false;  // accepts a longer sample of `step` units
};
/// @throws Error kUsage if nothing fits.
std::vector<TaskSample> fitted_samples(const TaskRequest& request, const FittedTask& task);

/// @throws Error kUsage: a length without room for the task.
[[noreturn]] void refuse_length(std::size_t length);

}  // namespace kvs::inline tasks
