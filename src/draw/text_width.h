// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvs::draw {

/// Returns the width of `words` at a font size, in the font size's unit. The widths are DejaVu Sans's, the font of the
/// files, which is wider than most fonts of pages.
double text_width(std::string_view words, double size, bool bold = false);

/// Returns `words`, cut to `width` with an ellipsis if necessary.
std::string shortened(const std::string& words, double width, double size);

/// Breaks `words` at spaces into lines no wider than `width`. A longer word is cut.
std::vector<std::string> wrapped(std::string_view words, double width, double size);

}  // namespace kvs::draw
