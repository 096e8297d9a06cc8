#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace kvs::draw {

/// Three significant digits without an exponent where that is short: "0.0264", "30.5", "1,204", "3.1e−7". A minus is
/// U+2212.
std::string shown(double value, int digits = 3);
/// The same without zeros at the end: "16", "15.5".
std::string shown_short(double value, int digits = 3);
/// A share as "12.5 %" with a no-break space.
std::string shown_percent(double share, int digits = 3);
/// The same with one digit behind the point always, for columns: "14.0 %".
std::string shown_tenths(double share);
/// A change as "+2.1 %", "−0.3 %", "0 %".
std::string shown_change(double change, int digits = 2);
/// The ends of an interval of changes: "−0.3 to +2.1 %".
std::string shown_range(std::pair<double, double> changes);
/// "2,044": whole numbers with separators.
std::string shown_count(std::size_t count);
/// With its first letter as a capital.
std::string capitalised(std::string words);
/// "3 layers", "1 layer".
std::string counted(std::size_t count, const std::string& word);
/// At most two digits behind the point, for an SVG.
std::string coordinate(double value);
/// As scripts read it: nine digits.
std::string shown_key(double value);

}  // namespace kvs::draw
