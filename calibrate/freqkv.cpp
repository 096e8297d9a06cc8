#include "calibrate/freqkv.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "core/error.h"
#include "kernels/dct_resample.h"

namespace kvs {

std::size_t freqkv_length(std::size_t tokens, double gamma) {
  if (!(gamma > 0 && gamma <= 1))
    throw Error(ErrorCode::kUsage, "gamma", "found " + std::to_string(gamma) + ", expected more than 0 and at most 1");
  return static_cast<std::size_t>(gamma * static_cast<double>(tokens));
}

std::size_t freqkv_compressions(std::size_t tokens, std::size_t cache_size, const FreqkvOptions& options) {
  const std::size_t span = cache_size > options.sinks ? cache_size - options.sinks : 0;
  const std::size_t freed = span - freqkv_length(span, options.gamma);
  if (freed == 0)
    throw Error(ErrorCode::kUsage, "cache_size",
                "found " + std::to_string(cache_size) + " slots of which a compression frees none, expected more");
  return tokens <= cache_size ? 0 : (tokens - cache_size + freed - 1) / freed;
}

std::vector<float> freqkv_compress(TensorView<const float, 3> states, const FreqkvOptions& options) {
  const auto [heads, tokens, head_dim] = states.shape();
  const std::size_t sinks = options.sinks, body = tokens > sinks ? tokens - sinks : 0;
  const std::size_t length = freqkv_length(body, options.gamma);
  if (length == 0)
    throw Error(ErrorCode::kUsage, "freqkv",
                "found " + std::to_string(body) + " tokens after the sinks, expected enough to keep one");
  const double scale = options.rescale ? std::sqrt(static_cast<double>(length) / static_cast<double>(body)) : 1.0;
  std::vector<float> result(heads * (sinks + length) * head_dim);
  for (std::size_t head = 0; head < heads; ++head) {
    const std::span<const float> from = states.slice(head).span();
    const std::span<float> to =
        std::span(result).subspan(head * (sinks + length) * head_dim, (sinks + length) * head_dim);
    std::ranges::copy(from.first(sinks * head_dim), to.begin());
    dct_resample(TensorView<const float, 2>(from.subspan(sinks * head_dim), {body, head_dim}),
                 options.high_band ? body - length : 0, scale,
                 TensorView<float, 2>(to.subspan(sinks * head_dim), {length, head_dim}));
  }
  return result;
}

}  // namespace kvs
