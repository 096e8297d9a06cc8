// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tasks/fitting.h"
#include "tasks/haystack.h"
#include "tasks/python_random.h"
#include "tasks/task.h"
#include "tasks/words.h"

namespace kvs::inline tasks {
namespace {

constexpr std::size_t kCommon = 10, kCommonWordsRoom = 120;

/// Number of words in a list and how often each occurs.
struct Frequencies {
  std::size_t words, common, others;
};

std::string numbered(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t n = 0; n < words.size(); ++n) text += (n == 0 ? "" : " ") + std::to_string(n + 1) + ". " + words[n];
  return text;
}

/// Asks for the ten most common words of a list, after a solved example. Words come from words.h: plain words, and
/// compounds if a list needs more.
/// Source: NVIDIA/RULER, scripts/data/synthetic/common_words_extraction.py and constants.py (Apache-2.0).
class CommonWords {
 public:
  explicit CommonWords(const TaskRequest& request)
      : random_(request.seed), seed_(request.seed), is_short_(request.length < 4096), words_(plain_words()) {
    PythonRandom(seed_).shuffle(words_);
  }

  /// @param size  number of different words
  TaskSample make(std::size_t size) {
    TaskSample example = list(is_short_ ? Frequencies{20, 3, 1} : Frequencies{40, 10, 3});
    TaskSample asked = list(is_short_ ? Frequencies{size, 6, 1} : Frequencies{size, 30, 3});
    asked.context = example.prompt() + " " + numbered(example.answers) + "\n" + asked.context;
    return asked;
  }

 private:
  TaskSample list(const Frequencies& frequencies) {
    const std::vector<std::string>& source = frequencies.words <= words_.size() ? words_ : compound_words();
    std::vector<std::string> chosen;
    for (const std::size_t n : random_.sample(source.size(), frequencies.words)) chosen.push_back(source[n]);
    const auto others = chosen.begin() + kCommon;
    std::vector<std::string> all;
    for (std::size_t n = 0; n < frequencies.common; ++n) all.insert(all.end(), chosen.begin(), others);
    for (std::size_t n = 0; n < frequencies.others; ++n) all.insert(all.end(), others, chosen.end());
    PythonRandom(seed_).shuffle(all);
    return {.context =
                "Below is a numbered list of words. In these words, some appear more often than others. "
                "Memorize the ones that appear most often.\n" +
                numbered(all),
            .question =
                "\nQuestion: What are the 10 most common words in the above list? Answer: The top 10 words "
                "that appear most often in the list are:",
            .answers = {chosen.begin(), others}};
  }

  PythonRandom random_;
  std::uint64_t seed_;
  bool is_short_;
  std::vector<std::string> words_;
};

}  // namespace

const TaskDefinition kCommonWordsTask{
    "ruler-cwe", "the ten most common words of a list", kCommonWordsRoom, false, false, [](const TaskRequest& request) {
      constexpr std::size_t kStep = 10, kProbe = 4096;
      CommonWords words(request);
      const auto make = [&](std::size_t size) { return words.make(size); };
      return fitted_samples(request, {.step = kStep,
                                      .probe = kProbe,
                                      .most = [](double units) { return 2 * static_cast<std::size_t>(units); },
                                      .answer_room = kCommonWordsRoom,
                                      .make = make,
                                      .finish = make});
    }};

}  // namespace kvs::inline tasks
