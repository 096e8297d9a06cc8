#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "export/report/chart.h"

namespace kvs {

/// A cache by what it holds and what it costs.
struct TradePoint {
  std::string label, method;  // the method decides colour and form
  bool stored = false;        // in a storage type of its own: hollow
  double bytes = 1;           // of the full cache
  double loss = 0;            // relative change of perplexity
  std::optional<std::pair<double, double>> interval;
  bool front = false;  // nothing smaller costs less
  std::string note;    // what else there is to say
};

/// Marks the points that no other beats in both bytes and loss.
void mark_front(std::vector<TradePoint>& points);
/// Bytes against loss, both on logarithmic scales; losses below a tenth of a percent lie at the bottom.
Markup draw_tradeoff(const DrawingText& words, const std::vector<TradePoint>& points, double width, double height);
/// The same for wide and for narrow pages, with the key to methods.
Markup tradeoff(const DrawingText& words, const std::vector<TradePoint>& points);

}  // namespace kvs
