#include "tasks/fitting.h"
#include "tasks/haystack.h"
#include "tasks/python_random.h"
#include "tasks/task.h"

namespace kvs {
namespace {

constexpr std::size_t kDigits = 64, kPasskeyRoom = 72;

/// The first words of a text that is repeated as need be, each with the blanks behind it.
class Background {
 public:
  explicit Background(std::string_view text) : text_(text) {
    for (const std::string_view word : words_of(text_))
      starts_.push_back(static_cast<std::size_t>(word.data() - text_.data()));
  }

  /// Words [first, last), without blanks at the ends.
  std::string words(std::size_t first, std::size_t last) const {
    std::string cut;
    for (std::size_t n = first; n < last; ++n) {
      const std::size_t word = n % starts_.size(), end = word + 1 < starts_.size() ? starts_[word + 1] : text_.size();
      cut += text_.substr(starts_[word], end - starts_[word]);
    }
    return std::string(stripped(cut));
  }

 private:
  std::string_view text_;
  std::vector<std::size_t> starts_;  // of words
};

TaskSample passkey(const Background& background, std::size_t words, double depth, const std::string& key) {
  const auto before = static_cast<std::size_t>(static_cast<double>(words) * depth);
  return {.context =
              "There is an important info hidden inside a lot of irrelevant text. Find it and memorize it. I "
              "will quiz you about the important information there.\n" +
              background.words(0, before) + " The pass key is " + key + ". Remember it. " + key + " is the pass key. " +
              background.words(before, words) + " ",
          .question = "\nWhat is the pass key? The pass key is ",
          .answers = {key},
          .depth = depth};
}

/// A key of 64 digits at a depth of a text, told twice. As many words as fit.
/// Source: the form that LagKV measures with, that of Yuan et al. (2024), longctx_bench (MIT), after Mohtashami and
/// Jaggi (2023). There lengths are words; here they are tokens, the answer's included.
std::vector<TaskSample> make_passkeys(const TaskRequest& request) {
  const std::string noise = std::string(kNoise) + " ";
  const Background background(request.haystack.empty() ? noise : request.haystack);
  PythonRandom random(request.seed);
  std::vector<TaskSample> samples;
  for (const double depth : request.depths)
    for (std::size_t n = 0; n < request.samples; ++n) {
      std::string key;
      while (key.size() < kDigits) key += static_cast<char>('0' + random.below(10));
      const auto fits = [&](std::size_t words) {
        const TaskSample tried = passkey(background, words, depth, key);
        return request.tokenizer.encode(tried.prompt()).size() + kPasskeyRoom <= request.length;
      };
      if (!fits(0)) refuse_length(request.length);
      samples.push_back(passkey(background, largest_size(0, request.length, fits), depth, key));
      samples.back().length = request.length;
    }
  return samples;
}

}  // namespace

const TaskDefinition kPasskeyTask{
    "passkey", "64 digits in noise or in a text, by depth and length", kPasskeyRoom, false, true, make_passkeys};

}  // namespace kvs
