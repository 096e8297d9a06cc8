#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "draw/chart.h"

namespace kvs {

/// Time of a token with one cache, by the tokens before it.
struct CacheTimes {
  std::string label;
  struct Phase {
    std::vector<double> milliseconds, ratio;  // [length]; ratio: to the full cache's, or empty
  };
  Phase prefill, decode;
};

/// A panel of the prefill and one of decoding.
draw::Chart latency_chart(const std::string& heading, const std::vector<std::size_t>& lengths,
                          const std::vector<CacheTimes>& caches);

}  // namespace kvs
