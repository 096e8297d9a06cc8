// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace kvs::patterns {

// R"kvs(...)kvs" keeps each pattern as its own program writes it. Patterns whose names end in Gguf are llama.cpp's
// (src/llama-vocab.cpp, llm_tokenizer_bpe). They differ from the models' own: there is no case folding beyond ASCII, so
// that U+017F (long s) after an apostrophe does not match "'s"; letters are "not a-z" instead of Unicode's cases.

/// GPT-2 (openai/gpt-2 src/encoder.py)
inline constexpr std::string_view kGpt2 =
    R"kvs('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)kvs";
/// kGpt2 without its last alternative, which has no effect; llama.cpp and some files write it this way.
inline constexpr std::string_view kGpt2Short =
    R"kvs('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))kvs";
inline constexpr std::string_view kDigit = R"kvs(\p{N})kvs";
inline constexpr std::string_view kDigitThrees = R"kvs(\p{N}{1,3})kvs";
inline constexpr std::string_view kDigits = R"kvs(\p{N}+)kvs";
/// Llama 3: cl100k with digits in threes.
inline constexpr std::string_view kLlama3 =
    R"kvs((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
inline constexpr std::string_view kLlama3Gguf =
    R"kvs((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
/// kLlama3 as cl100k writes it (GPT-4, Phi-4).
inline constexpr std::string_view kCl100k =
    R"kvs('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)kvs";
/// Qwen 2, 2.5 and 3
inline constexpr std::string_view kQwen2 =
    R"kvs((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
inline constexpr std::string_view kQwen2Gguf =
    R"kvs((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
/// Qwen 3.5: marks stay with their letters.
inline constexpr std::string_view kQwen35 =
    R"kvs((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
inline constexpr std::string_view kQwen35Gguf =
    R"kvs((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
/// Mistral's Tekken (Nemo and later)
inline constexpr std::string_view kTekken =
    R"kvs([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
/// llama.cpp writes its class of letters as ((?=[\p{L}])([^a-z])), which is [^a-z\P{L}].
inline constexpr std::string_view kTekkenGguf =
    R"kvs([^\r\n\p{L}\p{N}]?[^a-z\P{L}]*[^A-Z\P{L}]+|[^\r\n\p{L}\p{N}]?[^a-z\P{L}]+[^A-Z\P{L}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
/// GPT-4o, Llama 4
inline constexpr std::string_view kGpt4o =
    R"kvs([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
inline constexpr std::string_view kGpt4oGguf =
    R"kvs([^\r\n\p{L}\p{N}]?[^a-z\P{L}]*[^A-Z\P{L}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[^a-z\P{L}]+[^A-Z\P{L}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
/// DeepSeek LLM and Coder: the steps, in order.
inline constexpr std::string_view kLineBreak = R"kvs([\r\n])kvs";
inline constexpr std::string_view kDeepseekLetters =
    R"kvs(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)kvs";
inline constexpr std::string_view kDeepseekPunctuation = R"kvs(\s?[!-/:-~！-／：-～‘-‟　-。]+)kvs";
inline constexpr std::string_view kSpaceAtEnd = R"kvs(\s+$)kvs";
/// The pattern run for kSpaceAtEnd. It tries a run of spaces from its start only; otherwise the time is quadratic in
/// the length of the run. (?m) gives `$` its meaning in Oniguruma, which `tokenizers` uses.
inline constexpr std::string_view kSpaceAtEndRun = R"kvs((?m)(?:\G|(?<!\s))\s+$)kvs";
inline constexpr std::string_view kDeepseekCjk = R"kvs([一-龥ࠀ-一가-퟿]+)kvs";
/// llama.cpp hides white space beyond ASCII from patterns without \p, so these two do not match it.
inline constexpr std::string_view kDeepseekPunctuationGguf = R"kvs(\s?[!-/:-~！-／：-～‘-‟\x{3001}-。]+)kvs";
inline constexpr std::string_view kDeepseekCjkGguf =
    R"kvs([一-龥ࠀ-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-一가-퟿]+)kvs";
inline constexpr std::string_view kSpaceLetters = R"kvs(\s?\p{L}+)kvs";
inline constexpr std::string_view kSpacePunctuation = R"kvs(\s?\p{P}+)kvs";
/// DeepSeek V3 and R1, after digits in threes.
inline constexpr std::string_view kDeepseek3Cjk = R"kvs([一-龥぀-ゟ゠-ヿ]+)kvs";
inline constexpr std::string_view kDeepseek3 =
    R"kvs([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
/// Kimi K2 as llama.cpp splits it: Han by blocks apart from other letters, whose cases it does not tell apart.
inline constexpr std::string_view kKimiK2Gguf =
    R"kvs([\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{f900}-\x{faff}\x{20000}-\x{2a6df}\x{2a700}-\x{2ebef}\x{2f800}-\x{2fa1f}]+|[^\r\n\p{L}\p{N}]?[^\P{L}\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{f900}-\x{faff}\x{20000}-\x{2a6df}\x{2a700}-\x{2ebef}\x{2f800}-\x{2fa1f}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
/// MiniCPM 5, after digits in threes.
inline constexpr std::string_view kMiniCpm5Gguf =
    R"kvs((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
/// kQwen2Gguf without contractions.
inline constexpr std::string_view kUfakzeka =
    R"kvs([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
inline constexpr std::string_view kSeedCoder =
    R"kvs((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)kvs";
inline constexpr std::string_view kBailing =
    R"kvs('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)kvs";
inline constexpr std::string_view kBloom = R"kvs( ?[^(\s|.,!?…。，、।۔،)]+)kvs";
/// Falcon, and llama.cpp's default if a file names no pre-tokenizer.
inline constexpr std::string_view kPunctuationDefault = R"kvs([\p{P}\$\+<=>\^~\|]+)kvs";
inline constexpr std::string_view kPunctuationFalcon = R"kvs([\p{P}\$\+<=>\^~\|`]+)kvs";
inline constexpr std::string_view kThreeAsciiDigits = R"kvs([0-9][0-9][0-9])kvs";
/// In Replace normalizers.
inline constexpr std::string_view kSpaces = R"kvs( {2,})kvs";

}  // namespace kvs::patterns
