// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include "tasks/fitting.h"
#include "tasks/haystack.h"
#include "tasks/python_random.h"
#include "tasks/task.h"

namespace kvs::inline tasks {
namespace {

constexpr std::size_t kHops = 4, kVariables = kHops + 1, kVariablesRoom = 30, kExampleLength = 500;
constexpr std::string_view kUpperCase = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", kExampleValue = "12345";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Assigns a value from variable to variable, within noise, after a solved example.
/// Source: NVIDIA/RULER, scripts/data/synthetic/variable_tracking.py and constants.py (Apache-2.0), with its draws from
/// `random` and from NumPy.
class VariableTracking {
 public:
  explicit VariableTracking(const TaskRequest& request)
      : request_(request), random_(request.seed), numpy_(static_cast<std::uint32_t>(request.seed)) {}

  std::vector<TaskSample> samples() {
    TaskRequest shorter = request_;
    shorter.length = kExampleLength;
    shorter.samples = 1;
    shorter.bos = -1;
    const auto example = [&](std::size_t size) { return make(size, true); };
    const TaskSample solved = fitted_samples(shorter, {.step = 5,
                                                       .probe = 5,
                                                       .most = most,
                                                       .answer_room = 0,
                                                       .make = example,
                                                       .finish = example,
                                                       .takes_smallest = true})
                                  .front();
    const std::string text = solved.prompt() + " " + joined(solved.answers, " ") + "\n";
    constexpr std::size_t kShort = 4096;
    const std::size_t step = request_.length < kShort ? 5 : 10;
    return fitted_samples(request_, {.step = step,
                                     .probe = step,
                                     .most = most,
                                     .answer_room = kVariablesRoom,
                                     .search_room = request_.tokenizer.encode(text).size(),
                                     .make = [&](std::size_t size) { return make(size, false); },
                                     .finish =
                                         [&](std::size_t size) {
                                           TaskSample sample = make(size, false);
                                           sample.context = renamed(text, solved.answers) + "\n" + sample.context;
                                           return sample;
                                         }});
  }

 private:
  static std::size_t most(double units) { return static_cast<std::size_t>(units * 3); }

  /// numpy.random.randint(10000, 99999) of the legacy generator; the upper bound is excluded.
  std::string number() {
    constexpr std::uint32_t kLeast = 10000, kRange = 99998 - kLeast, kMask = (1U << 17U) - 1;
    std::uint32_t drawn = 0;
    do drawn = static_cast<std::uint32_t>(numpy_()) & kMask;
    while (drawn > kRange);
    return std::to_string(kLeast + drawn);
  }

  /// @param size  number of lines of noise
  TaskSample make(std::size_t size, bool is_example) {
    std::vector<std::string> names;
    const auto draw = [&] { names.push_back(random_.letters(kUpperCase, is_example ? 3 : 5)); };
    while (names.size() < kVariables) draw();
    const std::string value = is_example ? std::string(kExampleValue) : number();
    std::vector<std::string> lines(size, std::string(kNoise));
    std::vector<std::size_t> places = random_.sample(size, kVariables);
    std::ranges::sort(places);
    for (std::size_t n = 0; n < kVariables; ++n)
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(places[n] + n),
                   "VAR " + names[n] + " = " + (n == 0 ? value : "VAR " + names[n - 1] + " "));
    return {.context = "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n" +
                       joined(lines, "\n"),
            .question = "\nQuestion: Find all variables that are assigned the value " + value +
                        " in the text above. Answer: According to the chain(s) of variable assignment in the text "
                        "above, " +
                        std::to_string(kVariables) + " variables are assigned the value " + value + ", they are: ",
            .answers = names};
  }

  /// Returns the example with other names and another value.
  std::string renamed(std::string text, const std::vector<std::string>& names) {
    for (const std::string& name : names) replace_all(text, name, random_.letters(kUpperCase, name.size()));
    replace_all(text, kExampleValue, number());
    return text;
  }

  const TaskRequest& request_;
  PythonRandom random_;
  std::mt19937 numpy_;
};

}  // namespace

const TaskDefinition kVariableTrackingTask{
    "ruler-vt",     "the variables that get a value, in noise",
    kVariablesRoom, false,
    false,          [](const TaskRequest& request) { return VariableTracking(request).samples(); }};

}  // namespace kvs::inline tasks
