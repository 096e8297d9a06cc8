#pragma once

#include <string>
#include <vector>

#include "export/report/markup.h"
#include "results/tradeoff_chart.h"

namespace kvs {

/// Bytes against loss for wide and for narrow pages, with the key to methods.
Markup tradeoff(const std::string& id, const std::string& title, const std::string& description, const LossScale& scale,
                const std::vector<TradePoint>& points);

}  // namespace kvs
