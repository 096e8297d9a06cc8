#pragma once

#include <string>
#include <vector>

namespace kvs {

/// The methods in the order that decides their looks in figures: a method has one colour and form wherever it is drawn.
/// "quantised alone" is the full cache in a storage type.
std::vector<std::string> method_order();

}  // namespace kvs
