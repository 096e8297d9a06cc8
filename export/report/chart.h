#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "export/report/axis.h"
#include "export/report/html.h"

namespace kvs {

/// What a reader who cannot see a drawing is told; `id` is unique in the page.
struct DrawingText {
  std::string id, title, description;
};

/// A drawing of `width` by `height` user units that a page shows at about their size in pixels.
Markup drawing(const DrawingText& words, double width, double height, const Markup& content);

/// A rectangle between two axes with its margins.
class Frame {
 public:
  struct Margins {
    double left = 58, right = 14, top = 30, bottom = 44;
  };
  Frame(double width, double height, Axis x, Axis y, Margins margins);
  Frame(double width, double height, Axis x, Axis y) : Frame(width, height, x, y, Margins{}) {}

  double x(double value) const noexcept { return left_ + x_.place(value) * (right_ - left_); }
  double y(double value) const noexcept { return bottom_ - y_.place(value) * (bottom_ - top_); }
  double left() const noexcept { return left_; }
  double right() const noexcept { return right_; }
  double top() const noexcept { return top_; }
  double bottom() const noexcept { return bottom_; }

  struct Labels {
    std::string title, x, y;
    Axis::Label x_tick = plain_label, y_tick = plain_label;
  };
  /// Grid, ticks with their numbers, what the axes mean, the panel's title.
  Markup axes(const Labels& labels, std::size_t x_ticks = 6, std::size_t y_ticks = 6) const;

 private:
  Axis x_, y_;
  double left_, right_, top_, bottom_;
};

/// Text at a place; `anchor` is start, middle or end.
Markup label(double x, double y, const std::string& words, const std::string& anchor, const std::string& style = "");

/// How many colours a scale has: classes q0 … and d0 … of page.css.
inline constexpr std::size_t kSequentialColours = 12, kDivergingColours = 13;
/// "q7": of a value between 0 and 1.
std::string sequential_class(double share);
/// "d7": of a value between −1 and 1; 0 is the middle.
std::string diverging_class(double share);

/// The colours of a scale in order, each with its label or none.
using ColourKey = std::vector<std::pair<std::string, std::string>>;
/// Keys of the scales from the label of one end to that of the other.
ColourKey sequential_key(const std::string& low, const std::string& high);
ColourKey diverging_key(const std::string& low, const std::string& middle, const std::string& high);
/// A strip of the colours with their labels beneath; 24 units high.
Markup colour_key(const ColourKey& key, double left, double top);

}  // namespace kvs
