// SPDX-License-Identifier: Apache-2.0
#include "export/report/pareto.h"

#include "calibrate/method_order.h"
#include "draw/svg.h"

namespace kvs::inline report {

Markup pareto_figure(const std::string& id, const std::string& title, const std::string& description,
                     const LossScale& scale, const std::vector<TradePoint>& points) {
  draw::Chart chart = pareto_chart("", description, scale, points, method_order());
  chart.panels.front().title = title;
  const draw::Panel& panel = chart.panels.front();
  return element("div", {{"class", "wide"}}, draw::page_drawing(chart, panel, id, {860, 340})) +
         element("div", {{"class", "narrow"}}, draw::page_drawing(chart, panel, id + "-narrow", {370, 260})) +
         draw::page_legend(chart);
}

}  // namespace kvs::inline report
