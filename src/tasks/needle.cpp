// SPDX-License-Identifier: Apache-2.0
#include "tasks/fitting.h"
#include "tasks/haystack.h"
#include "tasks/python_random.h"
#include "tasks/ruler_niah.h"
#include "tasks/task.h"
#include "tasks/words.h"

namespace kvs::inline tasks {
namespace {

constexpr std::size_t kNeedleRoom = 32;

/// Hides one needle between the sentences of a text, at a depth: Kamradt's test (2023) with RULER's needle and
/// question.
std::vector<TaskSample> make_needles_at_depths(const TaskRequest& request) {
  const UnitSupply supply(request.haystack.empty() ? kNoise : request.haystack);
  PythonRandom random(request.seed);
  std::vector<TaskSample> samples;
  for (const double depth : request.depths)
    for (std::size_t n = 0; n < request.samples; ++n) {
      const std::string key = random.choice(compound_words()), value = std::to_string(random.between(1000000, 9999999));
      const auto make = [&](std::size_t units) {
        const std::string text = supply.first(units);
        const std::vector<std::string_view> hay = parts_of(text);
        const auto place = static_cast<std::size_t>(static_cast<double>(hay.size()) * depth);
        std::vector<std::string> parts;
        if (place > 0) parts.emplace_back(whole_of(std::span(hay).first(place)));
        parts.push_back(magic_needle("numbers", key, value));
        if (place < hay.size()) parts.emplace_back(whole_of(std::span(hay).subspan(place)));
        TaskSample sample = magic_question(joined(parts, " "), "numbers", std::span(&key, 1), {value});
        sample.depth = depth;
        sample.length = request.length;
        return sample;
      };
      const auto fits = [&](std::size_t units) { return has_room(request, make(units), kNeedleRoom); };
      if (!fits(0)) refuse_length(request.length);
      samples.push_back(make(max_units(request.length, fits)));
    }
  return samples;
}

}  // namespace

const TaskDefinition kNeedleTask{
    "needle", "a number in noise or in a text, by depth and length", kNeedleRoom, false, true, make_needles_at_depths};

}  // namespace kvs::inline tasks
