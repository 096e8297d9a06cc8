#include "tasks/fitting.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/interrupt.h"

namespace kvs {

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

std::size_t most_units(std::size_t length, const std::function<bool(std::size_t)>& fits) {
  constexpr std::size_t kMostUnitsOfAToken = 64;
  std::size_t most = length;
  while (most < kMostUnitsOfAToken * length && fits(most)) {
    check_interrupt();
    most *= 2;
  }
  return largest_size(0, most, fits);
}

std::vector<TaskSample> fitted_samples(const TaskRequest& request, const FittedTask& task) {
  constexpr int kTries = 100;  // samples differ in length; RULER tries for ever
  const auto tokens = [&](const TaskSample& sample) { return request.tokenizer.encode(sample.prompt()).size(); };
  const auto fits = [&](std::size_t used) { return used + task.answer_room + task.search_room <= request.length; };
  std::size_t step = task.step;
  const std::size_t probed = tokens(task.make(task.probe));
  if (task.any_size && !fits(probed))
    while (step > 1 && !fits(tokens(task.make(step)))) {
      check_interrupt();
      step /= 2;
    }
  const double per_unit = static_cast<double>(probed) / static_cast<double>(task.probe);
  const std::size_t most = std::max(task.most(static_cast<double>(request.length) / per_unit), 2 * step);
  const std::size_t size = largest_size(step, most, [&](std::size_t tried) {
    check_interrupt();
    return fits(tokens(task.make(tried)));
  });
  std::vector<TaskSample> samples;
  while (samples.size() < request.samples) {
    std::size_t used = size;
    for (int tries = 1;; ++tries) {
      check_interrupt();
      TaskSample sample = task.finish(used);
      sample.length = request.length;
      if (tokens(sample) + task.answer_room <= request.length) {
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

}  // namespace kvs
