// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace kvs::draw {

/// Formats three significant digits, without an exponent if that is short: "0.0264", "30.5", "1,204", "3.1e−7". The
/// minus sign is U+2212.
std::string shown(double value, int digits = 3);
/// Like shown(), without trailing zeros: "16", "15.5".
std::string shown_short(double value, int digits = 3);
/// Formats a share as "12.5 %" with a no-break space.
std::string shown_percent(double share, int digits = 3);
/// Like shown_percent(), always with one decimal, for columns: "14.0 %".
std::string shown_tenths(double share);
/// Formats a change as "+2.1 %", "−0.3 %" or "0 %".
std::string shown_change(double change, int digits = 2);
/// Formats an interval of changes: "−0.3 to +2.1 %".
std::string shown_range(std::pair<double, double> changes);
/// Formats a whole number with thousands separators: "2,044".
std::string shown_count(std::size_t count);
/// Returns `words` with the first letter in upper case.
std::string capitalised(std::string words);
/// Returns "3 layers" or "1 layer".
std::string counted(std::size_t count, const std::string& word);
/// Formats a coordinate of an SVG with at most two decimals.
std::string coordinate(double value);
/// Formats nine digits, to be read by scripts.
std::string shown_key(double value);

}  // namespace kvs::draw
