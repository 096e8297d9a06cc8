// SPDX-License-Identifier: Apache-2.0
#include "eval/generation.h"

#include <chrono>

#include "eval/token_choice.h"

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

}  // namespace kvs::inline eval
