#include "export/config_lists.h"

#include <set>

namespace kvs {

std::vector<std::size_t> config_layers(const JsonCursor& config) {
  const JsonCursor layers = config.at("parameters").at("layers");
  const std::size_t count = config.at("model").at("layers").unsigned_integer();
  std::vector<std::size_t> list;
  for (std::size_t n = 0; n < layers.array_size(); ++n) {
    list.push_back(layers.at(n).unsigned_integer(count - 1));
    if (n > 0 && list[n] <= list[n - 1]) layers.at(n).fail("layers in ascending order, each once");
  }
  return list;
}

void check_index_list(const JsonCursor& list, std::size_t limit, std::size_t length) {
  if (length != 0 && list.array_size() != length) list.fail("a list of " + std::to_string(length) + " indices");
  std::set<std::uint64_t> seen;
  for (std::size_t n = 0; n < list.array_size(); ++n)
    if (!seen.insert(list.at(n).unsigned_integer(limit - 1)).second) list.at(n).fail("each index once");
}

void expect_length(const JsonCursor& list, std::size_t length, const std::string& what) {
  if (list.array_size() != length)
    list.fail("a list with one entry for each of the " + std::to_string(length) + ' ' + what);
}

}  // namespace kvs
