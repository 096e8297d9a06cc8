// SPDX-License-Identifier: Apache-2.0
#include "eval/generation.h"

#include <chrono>

#include "eval/token_choice.h"
#include "io/finite.h"

namespace kvs::inline eval {
namespace {

std::int32_t most_probable(Decoder& decoder, const ResidualStream& pass) {
  const std::size_t last = pass.tokens() - 1;
  return choose_token(decoder.logits(pass, std::span(&last, 1)), {}, {});
}

}  // namespace

Generation generate(Decoder& decoder, Cache& cache, std::span<const std::int32_t> prompt, std::size_t count,
                    const std::function<bool(std::int32_t)>& go_on) {
  const std::size_t length = prompt.size() + count;
  Generation result;
  std::int32_t next = 0;
  const CacheReport prefill = run_cached(decoder, cache, prompt, {.positions = cache.positions(length)},
                                         [&](const ResidualStream& pass, std::size_t first) {
                                           if (first + pass.tokens() == prompt.size())
                                             next = most_probable(decoder, pass);
                                         });
  result.prefill_seconds = prefill.seconds;
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    result.ids.push_back(next);
    if (!go_on(next) || result.ids.size() == count) break;
    ResidualStream pass =
        decoder.embed(std::span(&next, 1), prompt.size() + result.ids.size() - 1, cache.positions(length));
    decoder.advance(pass, decoder.model().config().layers(), nullptr, &cache);
    next = most_probable(decoder, pass);
  }
  result.decode_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.end = cache.bytes();
  result.compressions = cache.compressions();
  return result;
}

void add_generation(const Generation& made, std::span<const std::int32_t> prompt, GenerationResult& result) {
  const auto rate = [](std::size_t tokens, double seconds) {
    return tokens == 0 ? std::optional(0.0) : if_finite(static_cast<double>(tokens) / seconds);
  };
  result.prompt_ids.assign(prompt.begin(), prompt.end());
  result.ids = made.ids;
  result.bytes_end = made.end.stored;
  result.bytes_allocated = made.end.used + made.end.spare;
  result.compressions = made.compressions;
  result.prefill_tokens_per_second = rate(prompt.size(), made.prefill_seconds);
  result.decode_tokens_per_second = rate(made.ids.size() - 1, made.decode_seconds);
}

}  // namespace kvs::inline eval
