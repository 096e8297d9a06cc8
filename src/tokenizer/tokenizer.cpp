// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer.h"

#include "core/error.h"

namespace kvs::inline tokenizer {

std::int32_t chosen_bos(const Tokenizer& tokenizer, BosChoice choice) {
  if (choice == BosChoice::kOn && tokenizer.bos() < 0)
    throw Error(ErrorCode::kUsage, "--bos", "found on, but the model names no begin-of-sequence token");
  const bool begins = choice == BosChoice::kOn || (choice == BosChoice::kAuto && tokenizer.adds_bos());
  return begins ? tokenizer.bos() : -1;
}

void begin_with(std::int32_t bos, std::vector<std::int32_t>& ids) {
  if (bos >= 0 && (ids.empty() || ids.front() != bos)) ids.insert(ids.begin(), bos);
}

}  // namespace kvs::inline tokenizer
