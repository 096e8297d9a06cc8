#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "io/tokenizer/regex.h"

namespace kvs {

/// Receives one piece after another; the view is good only during the call.
using PieceSink = std::function<void(std::string_view)>;

/// One step of pre-tokenisation: cuts a text into non-empty pieces, in order. Thread-safe.
class SplitStep {
 public:
  virtual ~SplitStep() = default;
  virtual void split(std::string_view text, const PieceSink& sink) const = 0;
};
using SplitSteps = std::vector<std::unique_ptr<const SplitStep>>;

/// What becomes of a match, by the names of the `tokenizers` library.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// Splits at each match of `pattern`; with `invert` at everything between the matches.
std::unique_ptr<const SplitStep> make_regex_split(Regex pattern, SplitBehavior behavior = SplitBehavior::kIsolated,
                                                  bool invert = false);
/// Puts a space before a text that does not begin with one.
std::unique_ptr<const SplitStep> make_prefix_space();

/// GPT-2's split pattern (openai/gpt-2 src/encoder.py).
extern const std::string_view kGpt2Pattern;
/// One number character each (\p{N}).
extern const std::string_view kDigitPattern;

/// True if `pattern` is one of the split patterns of known tokenizer.json files. No other pattern is ever run: a
/// backtracking engine on a pattern from a file can be made to take any time.
bool is_known_pattern(std::string_view pattern) noexcept;

/// The patterns that llama.cpp applies one after the other for a `tokenizer.ggml.pre`.
struct GgufPreTokenizer {
  std::vector<std::string_view> patterns;
  bool ignore_merges = false;
};
/// nullptr for a name that is not known.
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) noexcept;

}  // namespace kvs
