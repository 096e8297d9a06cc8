#pragma once

#include <string>
#include <vector>

#include "export/report/html.h"

namespace kvs {

/// How many methods have a colour and a form of their own; more begin anew.
inline constexpr std::size_t kMarkers = 8;

/// The mark of series `n` at a place: a colour and a form, so that neither alone has to tell series apart.
Markup marker(std::size_t n, bool hollow, double x, double y);
/// A list of marks and names.
Markup legend(const std::vector<std::string>& names);

}  // namespace kvs
