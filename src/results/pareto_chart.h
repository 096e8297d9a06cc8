// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "draw/chart.h"

namespace kvs::inline results {

/// TradePoint::method of the full cache in a storage type.
inline constexpr const char* kQuantisedAlone = "quantised alone";

/// The size and the loss of one cache.
struct TradePoint {
  std::string label, method;  // the method determines the colour and the mark
  bool stored = false;        // rows have their own storage type; drawn hollow
  double bytes = 1;           // as a share of the full cache
  double loss = 0;            // on the chart's loss scale
  std::string tooltip;        // the loss in words and further details
  draw::Interval interval;    // 95 % interval of the loss
  bool pareto_front = false;  // true if no smaller cache has a lower loss
};

/// The measure of a loss: the title, the lower end and the labels of the vertical axis.
struct LossScale {
  std::string title;
  double least;  // lower losses are drawn at this value
  draw::Axis::Label tick;
};
/// Relative change of perplexity; the axis starts at 0.1 %.
LossScale perplexity_scale();
/// KL divergence from the full cache's predictions in nats per token; the axis starts at 1e-5.
LossScale divergence_scale();

/// Sets `pareto_front` of the points that no other point beats in both bytes and loss.
void mark_pareto_front(std::vector<TradePoint>& points);

/// Draws loss against bytes on logarithmic scales, and the front as a staircase with labels where there is space.
/// @param methods  determines the order in which colours and marks are assigned; other methods follow
draw::Chart pareto_chart(const std::string& heading, const std::string& description, const LossScale& scale,
                         const std::vector<TradePoint>& points, std::span<const std::string> methods = {});

}  // namespace kvs::inline results
