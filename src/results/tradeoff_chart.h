#pragma once

#include <span>
#include <string>
#include <vector>

#include "draw/chart.h"

namespace kvs {

/// A cache by what it holds and what it costs.
struct TradePoint {
  std::string label, method;  // the method decides colour and form
  bool stored = false;        // in a storage type of its own: hollow
  double bytes = 1;           // of the full cache
  double loss = 0;            // on the plot's scale
  std::string told;           // the loss in words, and what else there is to say
  draw::Interval interval;    // of the loss, 95 %
  bool front = false;         // nothing smaller costs less
};

/// The measure of a loss: the name of the vertical axis, its lowest end, and its labels.
struct LossScale {
  std::string title;
  double least;  // losses below it lie there
  draw::Axis::Label tick;
};
/// Relative change of perplexity, from a tenth of a percent on.
LossScale perplexity_scale();
/// KL divergence from the full cache's predictions, nats a token, from 1e-5 on.
LossScale divergence_scale();

/// Marks the points that no other beats in both bytes and loss.
void mark_front(std::vector<TradePoint>& points);

/// Bytes against loss, both on logarithmic scales; the front as a staircase, named where there is room.
/// @param methods  in the order of their looks; those that are not among them follow
draw::Chart tradeoff_chart(const std::string& heading, const std::string& description, const LossScale& scale,
                           const std::vector<TradePoint>& points, std::span<const std::string> methods = {});

}  // namespace kvs
