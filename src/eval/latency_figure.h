#pragma once

#include <string>
#include <vector>

#include "draw/figure.h"

namespace kvs {

/// Time per token by length, of some caches.
struct LatencyFigure {
  struct Curve {
    std::string title;
    std::vector<double> prefill_ms, decode_ms;  // [length]
  };
  std::string heading;
  std::vector<std::size_t> lengths;  // ascending
  std::vector<Curve> curves;
};

/// A panel of the prefill and one of decoding.
FigureImages render_latency(const LatencyFigure& latency);

}  // namespace kvs
