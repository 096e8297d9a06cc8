// SPDX-License-Identifier: Apache-2.0
#include "calibrate/method_order.h"

#include "calibrate/registry.h"
#include "results/pareto_chart.h"

namespace kvs::inline calibrate {

std::vector<std::string> method_order() {
  std::vector<std::string> order{kQuantisedAlone};
  for (const Method* method : all_methods()) order.emplace_back(method->name);
  return order;
}

}  // namespace kvs::inline calibrate
