// SPDX-License-Identifier: Apache-2.0
#include "results/generation.h"

#include "core/human.h"
#include "results/evaluation.h"

namespace kvs::inline results {

std::string to_text(const GenerationResult& result) {
  const std::size_t prompt = result.prompt_ids.size(), made = result.ids.size();
  return result.method + ": " + std::to_string(prompt) + " tokens of prompt" + (result.bos ? " with BOS" : "") + ", " +
         std::to_string(made) + " generated, " + std::to_string(result.compressions) + " compressions, " +
         human_bytes(static_cast<double>(result.bytes_end)) + " cache at the end" +
         (result.shared_bytes ? ", besides " + shared_bytes_text(*result.shared_bytes, prompt + made) : "");
}

}  // namespace kvs::inline results
