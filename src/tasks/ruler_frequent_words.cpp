// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/interrupt.h"
#include "tasks/fitting.h"
#include "tasks/haystack.h"
#include "tasks/python_random.h"
#include "tasks/task.h"

namespace kvs::inline tasks {
namespace {

constexpr std::size_t kLetters = 6, kAsked = 3, kFrequentWordsRoom = 50;
constexpr double kZetaOfTwo = std::numbers::pi * std::numbers::pi / 6;

/// Asks for the three most frequent of made-up words whose frequencies fall as 1/rank²; the most frequent word is dots.
/// Source: NVIDIA/RULER, scripts/data/synthetic/freq_words_extraction.py and constants.py (Apache-2.0), α = 2.
class FrequentWords {
 public:
  FrequentWords(const TaskRequest& request, std::size_t room)
      : request_(request), room_(room), step_(room / 32), random_(request.seed) {}

  /// Returns the number of words that fills the room.
  std::size_t largest() {
    renew();
    std::size_t size = room_ / kLetters;
    while (tokens(make(size)) < room_) {
      check_interrupt();
      size += step_;
    }
    return size - step_;
  }
  TaskSample sample(std::size_t size) {
    renew();
    TaskSample made = make(size);
    for (; tokens(made) > room_; made = make(size)) {
      check_interrupt();
      if (size <= step_) refuse_length(request_.length);
      size -= step_;
    }
    made.length = request_.length;
    return made;
  }

 private:
  std::size_t tokens(const TaskSample& sample) const { return prompt_tokens(request_, sample); }

  /// Draws a new vocabulary, the most frequent word first.
  void renew() {
    const std::size_t count = room_ / 50;
    std::vector<std::string> drawn;
    const auto different = [&] {
      vocabulary_ = drawn;
      std::ranges::sort(vocabulary_);
      vocabulary_.erase(std::unique(vocabulary_.begin(), vocabulary_.end()), vocabulary_.end());
      return vocabulary_.size();
    };
    do drawn.push_back(random_.letters("abcdefghijklmnopqrstuvwxyz", kLetters));
    while (drawn.size() < count || different() < count);
    PythonRandom(request_.seed).shuffle(vocabulary_);
    vocabulary_.front() = "...";
  }

  TaskSample make(std::size_t size) const {
    std::vector<std::string> words;
    for (std::size_t rank = 1; rank <= vocabulary_.size(); ++rank) {
      const double expected = static_cast<double>(size) * std::pow(static_cast<double>(rank), -2.0) / kZetaOfTwo;
      words.insert(words.end(), static_cast<std::size_t>(expected), vocabulary_[rank - 1]);
    }
    PythonRandom(request_.seed).shuffle(words);
    return {.context =
                "Read the following coded text and track the frequency of each coded word. Find the three most "
                "frequently appeared coded words. " +
                joined(words, " "),
            .question =
                "\nQuestion: Do not provide any explanation. Please ignore the dots '....'. What are the three "
                "most frequently appeared words in the above coded text? Answer: According to the coded text "
                "above, the three most frequently appeared words are:",
            .answers = {vocabulary_.begin() + 1, vocabulary_.begin() + 1 + kAsked}};
  }

  const TaskRequest& request_;
  std::size_t room_, step_;
  PythonRandom random_;
  std::vector<std::string> vocabulary_;
};

}  // namespace

const TaskDefinition kFrequentWordsTask{"ruler-fwe",
                                        "the three most frequent words of a made-up text",
                                        kFrequentWordsRoom,
                                        false,
                                        false,
                                        [](const TaskRequest& request) {
                                          constexpr std::size_t kMinRoom =
                                              50 * (kAsked + 1);  // a vocabulary with the dots and the words asked for
                                          if (request.length < kFrequentWordsRoom + kMinRoom)
                                            refuse_length(request.length);
                                          FrequentWords words(request, request.length - kFrequentWordsRoom);
                                          const std::size_t size = words.largest();
                                          std::vector<TaskSample> samples;
                                          while (samples.size() < request.samples)
                                            samples.push_back(words.sample(size));
                                          return samples;
                                        }};

}  // namespace kvs::inline tasks
