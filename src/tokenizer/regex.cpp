// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <string>

#include "core/error.h"

namespace kvs::inline tokenizer {
namespace {

constexpr std::string_view kWhiteSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

/// Returns `pattern` with \s and \S spelt out. \S in a character class cannot be spelt out; no pattern uses it.
std::string spell_out_white_space(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c == '\\' && at + 1 < pattern.size()) {
      const char escaped = pattern[++at];
      if (escaped != 's' && escaped != 'S') {
        out.append({c, escaped});
      } else if (in_class) {
        out.append(kWhiteSpace);
      } else {
        out.append(escaped == 's' ? "[" : "[^").append(kWhiteSpace).append("]");
      }
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out.push_back(c);
  }
  return out;
}

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

/// PCRE2's match state. Each thread needs its own, and creating one costs more than a short match.
struct MatchState {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32UL << 10, 1UL << 20, nullptr);

  MatchState() {
    if (data == nullptr || context == nullptr || stack == nullptr) {
      release();
      throw std::bad_alloc();
    }
    pcre2_jit_stack_assign(context, nullptr, stack);
    pcre2_set_heap_limit(context, 64U << 10);  // KiB; used only without JIT
  }
  ~MatchState() { release(); }
  MatchState(const MatchState&) = delete;
  MatchState& operator=(const MatchState&) = delete;

 private:
  void release() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
};

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

Regex::Regex(std::string_view pattern, bool literal, Unicode version) : code_(std::make_unique<Code>()) {
  if (!literal && pattern.find("\\p") != std::string_view::npos) version_ = version;
  const std::string text = literal ? std::string(pattern) : spell_out_white_space(pattern);
  const std::uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), options, &error, &offset, nullptr);
  if (code_->code == nullptr) {
    throw Error(ErrorCode::kInternal, "pattern " + std::string(pattern), message_of(error));
  }
  // Without JIT (PCRE2_ERROR_JIT_BADOPTION, or no executable memory) pcre2_match interprets: same results, slower.
  pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE);
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

std::optional<Regex::Match> Regex::search(std::string_view text, std::size_t from, std::uint32_t steps) const {
  thread_local MatchState state;
  // The known patterns take a bounded number of steps per character; more steps mean a faulty pattern.
  constexpr std::size_t kStepsPerByte = 16, kMinSteps = 10'000'000, kMaxSteps = 0xFFFFFFFFU;
  const std::size_t enough = std::clamp(text.size() * kStepsPerByte, kMinSteps, kMaxSteps);
  pcre2_set_match_limit(state.context, steps != 0 ? steps : static_cast<std::uint32_t>(enough));
  const int count = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                PCRE2_NO_UTF_CHECK, state.data, state.context);
  if (count == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (count < 0)
    throw Error(ErrorCode::kData, "text split", "at byte " + std::to_string(from) + ": " + message_of(count));
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(state.data);
  return Match{ends[0], ends[1]};
}

std::string_view Regex::searchable(std::string_view text, std::string& storage) const {
  return version_ ? with_stand_ins(text, *version_, storage) : text;
}

}  // namespace kvs::inline tokenizer
