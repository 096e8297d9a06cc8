#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvs::draw {

/// How wide `words` are at a font size, in its units: as DejaVu Sans, the font of the files, which is wider than most
/// that a page has.
double text_width(std::string_view words, double size, bool bold = false);

/// `words`, cut to `width` with an ellipsis if they are wider.
std::string shortened(const std::string& words, double width, double size);

/// `words` on lines that are no wider than `width`, broken at blanks; a longer word is cut.
std::vector<std::string> wrapped(std::string_view words, double width, double size);

}  // namespace kvs::draw
