#include "calibrate/method_order.h"

#include "calibrate/registry.h"

namespace kvs {

std::vector<std::string> method_order() {
  std::vector<std::string> order{"quantised alone"};
  for (const Method* method : all_methods()) order.emplace_back(method->name);
  return order;
}

}  // namespace kvs
