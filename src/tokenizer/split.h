// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/regex.h"

namespace kvs::inline tokenizer {

/// Receives one piece after another; the view is valid only during the call. `first` is true if the piece is at the
/// start of the whole text (before added tokens are cut out).
using PieceSink = std::function<void(std::string_view piece, bool first)>;

/// One step of pre-tokenisation: cuts a text into non-empty pieces, in order. Thread-safe.
class SplitStep {
 public:
  virtual ~SplitStep() = default;
  virtual void split(std::string_view text, bool first, const PieceSink& sink) const = 0;
};
using SplitSteps = std::vector<std::unique_ptr<const SplitStep>>;

/// Treatment of a match, with the names of the `tokenizers` library.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// Splits at each match of `pattern`; with `invert`, at the text between the matches.
std::unique_ptr<const SplitStep> make_regex_split(Regex pattern, SplitBehavior behavior = SplitBehavior::kIsolated,
                                                  bool invert = false);
/// Puts a space before a text that does not begin with one.
std::unique_ptr<const SplitStep> make_prefix_space();

enum class PrependScheme { kNever, kFirst, kAlways };
/// Metaspace of `tokenizers`: replaces every space by `marker` and, depending on `scheme`, puts one before a text that
/// does not begin with one. With `split`, a piece ends before every marker.
std::unique_ptr<const SplitStep> make_metaspace(std::string marker, PrependScheme scheme, bool split);
/// Ends a piece before every run of `marker`s, except after a byte in `joined`.
std::unique_ptr<const SplitStep> make_marker_split(std::string_view marker, std::bitset<256> joined);

/// GPT-2's split pattern (openai/gpt-2 src/encoder.py).
extern const std::string_view kGpt2Pattern;
/// Each number character alone (\p{N}).
extern const std::string_view kDigitPattern;

/// Returns the pattern to run for a pattern of a tokenizer.json; nullopt if it is not a pattern of known files. No
/// other pattern is run: a pattern from a file can make a backtracking engine take any time.
std::optional<std::string_view> find_known_pattern(std::string_view pattern);

/// The patterns that llama.cpp applies in order for a `tokenizer.ggml.pre`.
struct GgufPreTokenizer {
  std::span<const std::string_view> patterns;
  bool ignore_merges = false;
  bool adds_bos = false;  // default if a file has no tokenizer.ggml.add_bos_token
};
/// Returns nullptr for an unknown name.
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) noexcept;

}  // namespace kvs::inline tokenizer
