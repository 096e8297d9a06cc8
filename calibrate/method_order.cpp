#include "calibrate/method_order.h"

#include "calibrate/registry.h"

namespace kvs {

std::vector<std::string> method_order() {
  std::vector<std::string> order{"quantised alone"};
  for (const CacheMethod* method : cache_methods()) order.emplace_back(method->name);
  for (const char* fitted : {"elitekv", "transform", "transform-head"}) order.emplace_back(fitted);
  return order;
}

}  // namespace kvs
