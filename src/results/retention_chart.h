#pragma once

#include <string>
#include <vector>

#include "draw/chart.h"

namespace kvs {

/// Perplexity relative to the unchanged model's where part of the spectrum is kept.
struct KeptBandCurve {
  std::string states;  // whose spectrum is cut: "k", "v", "kv"
  std::string band;    // which part stays, in words
  struct Value {
    double share, ratio;
    draw::Interval interval = {};
  };
  std::vector<Value> values = {};
};

/// Relative perplexity against the share that is kept: one panel each for keys, values and both, a logarithmic axis.
draw::Chart retention_chart(const std::string& heading, const std::vector<KeptBandCurve>& curves);

}  // namespace kvs
