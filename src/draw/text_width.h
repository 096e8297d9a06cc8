#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvs::draw {

/// How wide `words` are at a font size, in its units: as DejaVu Sans, the font of the files, which is wider than most
/// that a page has.
double text_width(std::string_view words, double size, bool bold = false);

/// `words` on lines that are no wider than `width`, broken at blanks.
std::vector<std::string> wrapped(std::string_view words, double width, double size);

}  // namespace kvs::draw
