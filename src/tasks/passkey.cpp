// SPDX-License-Identifier: Apache-2.0
#include "tasks/fitting.h"
#include "tasks/haystack.h"
#include "tasks/python_random.h"
#include "tasks/task.h"

namespace kvs::inline tasks {
namespace {

constexpr std::size_t kDigits = 64, kPasskeyRoom = 72;

TaskSample passkey(const UnitSupply& background, std::size_t units, double depth, const std::string& key) {
  const std::string text = background.first_as_written(units);
  const std::string before = background.first_as_written(static_cast<std::size_t>(static_cast<double>(units) * depth));
  const std::string behind(stripped(std::string_view(text).substr(before.size())));
  return {.context =
              "There is an important info hidden inside a lot of irrelevant text. Find it and memorize it. I "
              "will quiz you about the important information there.\n" +
              before + " The pass key is " + key + ". Remember it. " + key + " is the pass key. " + behind + " ",
          .question = "\nWhat is the pass key? The pass key is ",
          .answers = {key},
          .depth = depth};
}

/// Hides a key of 64 digits at a depth of a text and states it twice. The text is as long as fits.
/// Source: the form that LagKV is measured with, by Yuan et al. (2024), longctx_bench (MIT), after Mohtashami and Jaggi
/// (2023). There lengths are words; here they are tokens, including the answer.
std::vector<TaskSample> make_passkeys(const TaskRequest& request) {
  const std::string noise = std::string(kNoise) + " ";
  const UnitSupply background(request.haystack.empty() ? noise : request.haystack);
  PythonRandom random(request.seed);
  std::vector<TaskSample> samples;
  for (const double depth : request.depths)
    for (std::size_t n = 0; n < request.samples; ++n) {
      std::string key;
      while (key.size() < kDigits) key += static_cast<char>('0' + random.below(10));
      const auto fits = [&](std::size_t units) {
        return has_room(request, passkey(background, units, depth, key), kPasskeyRoom);
      };
      if (!fits(0)) refuse_length(request.length);
      samples.push_back(passkey(background, max_units(request.length, fits), depth, key));
      samples.back().length = request.length;
    }
  return samples;
}

}  // namespace

const TaskDefinition kPasskeyTask{
    "passkey", "64 digits in noise or in a text, by depth and length", kPasskeyRoom, false, true, make_passkeys};

}  // namespace kvs::inline tasks
