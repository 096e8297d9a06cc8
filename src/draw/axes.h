#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace kvs {

/// A gnuplot string that holds a list of tics ('3' 0, '5' 1, …): at position i the number values[i]; about `most` of
/// them, evenly spaced.
std::string index_tics(std::span<const std::size_t> values, std::size_t most);

/// e^exponent at the height where it is drawn: beyond 1e147 and below 1e-147 at the end of the page, so that the ratio
/// of two is a number, too.
double drawn_exponential(double exponent);

/// "10", "2.5": without trailing zeros.
std::string short_number(double value);

}  // namespace kvs
