// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "export/report/markup.h"
#include "results/pareto_chart.h"

namespace kvs::inline report {

/// Returns drawings of bytes against loss for wide and narrow pages, with the legend of methods.
Markup pareto_figure(const std::string& id, const std::string& title, const std::string& description,
                     const LossScale& scale, const std::vector<TradePoint>& points);

}  // namespace kvs::inline report
