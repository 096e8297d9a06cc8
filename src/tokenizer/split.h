#pragma once

#include <bitset>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/regex.h"

namespace kvs {

/// Receives one piece after another; the view is good only during the call. `first`: the piece begins where the whole
/// text, before any added token was cut out of it, begins.
using PieceSink = std::function<void(std::string_view piece, bool first)>;

/// One step of pre-tokenisation: cuts a text into non-empty pieces, in order. Thread-safe.
class SplitStep {
 public:
  virtual ~SplitStep() = default;
  virtual void split(std::string_view text, bool first, const PieceSink& sink) const = 0;
};
using SplitSteps = std::vector<std::unique_ptr<const SplitStep>>;

/// What becomes of a match, by the names of the `tokenizers` library.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// Splits at each match of `pattern`; with `invert` at everything between the matches.
std::unique_ptr<const SplitStep> make_regex_split(Regex pattern, SplitBehavior behavior = SplitBehavior::kIsolated,
                                                  bool invert = false);
/// Puts a space before a text that does not begin with one.
std::unique_ptr<const SplitStep> make_prefix_space();

enum class PrependScheme { kNever, kFirst, kAlways };
/// `tokenizers`' Metaspace: `marker` for every space and before a text that does not begin with one (by `scheme`);
/// with `split` a piece ends before every marker.
std::unique_ptr<const SplitStep> make_metaspace(std::string marker, PrependScheme scheme, bool split);
/// Ends a piece before every run of `marker`s that does not follow one of the bytes `joined`.
std::unique_ptr<const SplitStep> make_marker_split(std::string_view marker, std::bitset<256> joined);

/// GPT-2's split pattern (openai/gpt-2 src/encoder.py).
extern const std::string_view kGpt2Pattern;
/// One number character each (\p{N}).
extern const std::string_view kDigitPattern;

/// The pattern to run for one that a tokenizer.json names, or nothing if it is none of known files. No other pattern is
/// ever run: a backtracking engine on a pattern from a file can be made to take any time.
std::optional<std::string_view> find_known_pattern(std::string_view pattern);

/// The patterns that llama.cpp applies one after the other for a `tokenizer.ggml.pre`.
struct GgufPreTokenizer {
  std::vector<std::string_view> patterns;
  bool ignore_merges = false;
  bool adds_bos = false;  // where a file has no tokenizer.ggml.add_bos_token
};
/// nullptr for a name that is not known.
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) noexcept;

}  // namespace kvs
