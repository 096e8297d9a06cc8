#pragma once

#include <string>
#include <vector>

#include "export/report/chart.h"
#include "export/report/parts.h"

namespace kvs {

/// A cache by what it holds and what it costs.
struct TradePoint {
  std::string label, method;  // the method decides colour and form
  bool stored = false;        // in a storage type of its own: hollow
  double bytes = 1;           // of the full cache
  double loss = 0;            // on the plot's scale
  std::string told;           // the loss in words, and what else there is to say
  Range interval;             // of the loss, 95 %
  bool front = false;         // nothing smaller costs less
};

/// What a loss is: the name of the vertical axis, its lower end, and its numbers.
struct LossScale {
  std::string title;
  double least;  // losses below it lie there
  Axis::Label tick;
};
/// Relative change of perplexity, from a tenth of a percent on.
LossScale perplexity_scale();
/// KL divergence from the full cache's predictions, nats a token, from 1e-4 on.
LossScale divergence_scale();

/// Marks the points that no other beats in both bytes and loss.
void mark_front(std::vector<TradePoint>& points);
/// Bytes against loss, both on logarithmic scales.
Markup draw_tradeoff(const DrawingText& words, const LossScale& scale, const std::vector<TradePoint>& points,
                     double width, double height);
/// The same for wide and for narrow pages, with the key to methods.
Markup tradeoff(const DrawingText& words, const LossScale& scale, const std::vector<TradePoint>& points);

}  // namespace kvs
