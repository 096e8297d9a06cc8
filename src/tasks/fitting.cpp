// SPDX-License-Identifier: Apache-2.0
#include "tasks/fitting.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/interrupt.h"
#include "tasks/haystack.h"

namespace kvs::inline tasks {

namespace {

/// Returns the number of tokens of an answer after its prompt, at least `room`.
std::size_t answer_room(const TaskRequest& request, const TaskSample& sample, std::size_t room) {
  return std::max(room, request.tokenizer.encode(" " + joined(sample.answers, ", ")).size());
}

}  // namespace

std::size_t prompt_tokens(const TaskRequest& request, const TaskSample& sample) {
  std::vector<std::int32_t> ids = request.tokenizer.encode(sample.prompt());
  begin_with(request.bos, ids);
  return ids.size();
}

bool has_room(const TaskRequest& request, const TaskSample& sample, std::size_t room) {
  return prompt_tokens(request, sample) + answer_room(request, sample, room) <= request.length;
}

std::size_t largest_size(std::size_t least, std::size_t most, const std::function<bool(std::size_t)>& fits) {
  std::size_t best = least;
  for (std::size_t low = least, high = most; low <= high;) {
    const std::size_t middle = (low + high) / 2;
    if (fits(middle)) {
      best = middle;
      low = middle + 1;
    } else {
      if (middle == 0) break;
      high = middle - 1;
    }
  }
  return best;
}

std::size_t max_units(std::size_t length, const std::function<bool(std::size_t)>& fits) {
  constexpr std::size_t kMaxUnitsOfAToken = 64;
  std::size_t most = length;
  while (most < kMaxUnitsOfAToken * length && fits(most)) {
    check_interrupt();
    most *= 2;
  }
  return largest_size(0, most, fits);
}

std::vector<TaskSample> fitted_samples(const TaskRequest& request, const FittedTask& task) {
  constexpr int kTries = 100;  // samples differ in length; RULER tries without limit
  const auto fits = [&](const TaskSample& sample, std::size_t more = 0) {
    const std::size_t room = task.answer_room == 0 ? 0 : answer_room(request, sample, task.answer_room);
    return prompt_tokens(request, sample) + room + more <= request.length;
  };
  std::size_t step = task.step;
  const TaskSample probed = task.make(task.probe);
  if (task.any_size && !fits(probed, task.search_room))
    while (step > 1 && !fits(task.make(step), task.search_room)) {
      check_interrupt();
      step /= 2;
    }
  const double per_unit = static_cast<double>(prompt_tokens(request, probed)) / static_cast<double>(task.probe);
  const std::size_t most = std::max(task.most(static_cast<double>(request.length) / per_unit), 2 * step);
  const std::size_t size = largest_size(step, most, [&](std::size_t tried) {
    check_interrupt();
    return fits(task.make(tried), task.search_room);
  });
  std::vector<TaskSample> samples;
  while (samples.size() < request.samples) {
    std::size_t used = size;
    for (int tries = 1;; ++tries) {
      check_interrupt();
      TaskSample sample = task.finish(used);
      sample.length = request.length;
      if (fits(sample) || (task.takes_smallest && used <= step)) {
        samples.push_back(std::move(sample));
        break;
      }
      if (tries == kTries) refuse_length(request.length);
      if (used > step) used -= step;
    }
  }
  return samples;
}

void refuse_length(std::size_t length) {
  throw Error(ErrorCode::kUsage, "--lengths",
              "found " + std::to_string(length) + " tokens, expected more: the task and its answer have no room");
}

}  // namespace kvs::inline tasks
