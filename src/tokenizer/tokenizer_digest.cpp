// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer_digest.h"

#include <span>

#include "core/error.h"
#include "io/digest.h"

namespace kvs::inline tokenizer {
namespace {

/// Part of the format of configs: changing the text changes the digest of every tokenizer.
constexpr std::string_view kProbeText =
    "The rays of light, in passing from one medium into another, are bent; 1704, 3.14 and 65536. Don't mix red, green "
    "and violet: antidisestablishmentarianism!\n"
    "def area(r):\n    return 3 * r ** 2  # about\n\tfor (int i = 0; i < n; ++i) { a[i] += b->c; }\n\n"
    "съешь же ещё этих мягких булок. garçon, l'été, über, señor. "
    "中文我能吞下玻璃而不伤身体 한국어 日本語 😀 العربية हिन्दी ελληνικά";

}  // namespace

std::string tokenizer_digest(const Tokenizer& tokenizer) {
  try {
    const std::vector<std::int32_t> ids = tokenizer.encode(kProbeText);
    Sha256 digest;
    digest.update(std::as_bytes(std::span(ids)));
    return digest.finish();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInput) throw;
    return {};
  }
}

}  // namespace kvs::inline tokenizer
