#include "export/report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "export/report/numbers.h"

namespace kvs {
namespace {

constexpr double kLetter = 12;  // units of a line of text
constexpr double kDigit = 7.6;  // the most that a digit takes of it

/// Characters of UTF-8.
double letters(const std::string& words) {
  return static_cast<double>(std::ranges::count_if(words, [](char c) { return (c & 0xC0) != 0x80; }));
}

Markup straight_line(double x1, double y1, double x2, double y2, const std::string& style) {
  return element("line", {{"class", style},
                          {"x1", coordinate(x1)},
                          {"y1", coordinate(y1)},
                          {"x2", coordinate(x2)},
                          {"y2", coordinate(y2)}});
}

std::string colour_class(char scale, double place, std::size_t colours) {
  const double index = std::floor(place * static_cast<double>(colours));
  return scale + std::to_string(static_cast<int>(std::clamp(index, 0.0, static_cast<double>(colours - 1))));
}

}  // namespace

Markup drawing(const DrawingText& words, double width, double height, const Markup& content) {
  const Markup names = element("title", {{"id", words.id + "-title"}}, text(words.title)) +
                       element("desc", {{"id", words.id + "-desc"}}, text(words.description));
  return element("svg",
                 {{"id", words.id},
                  {"role", "img"},
                  {"viewBox", "0 0 " + coordinate(width) + " " + coordinate(height)},
                  {"style", "--w:" + coordinate(width)},
                  {"aria-labelledby", words.id + "-title " + words.id + "-desc"}},
                 names + content);
}

Frame::Frame(double width, double height, Axis x, Axis y, Margins margins)
    : x_(x),
      y_(y),
      left_(margins.left),
      right_(width - margins.right),
      top_(margins.top),
      bottom_(height - margins.bottom) {}

Markup Frame::axes(const Labels& labels, std::size_t x_ticks, std::size_t y_ticks) const {
  Markup result;
  double taken = std::numeric_limits<double>::infinity();  // by the label to the right
  auto ticks = x_.ticks(x_ticks, labels.x_tick);
  std::ranges::reverse(ticks);
  for (const auto& [value, words] : ticks) {
    result += straight_line(x(value), top_, x(value), bottom_, "grid");
    const double half = letters(words) * kDigit / 2;
    if (x(value) + half > taken) continue;
    result += label(x(value), bottom_ + 17, words, "middle", "tick");
    taken = x(value) - half - kDigit;
  }
  for (const auto& [value, words] : y_.ticks(y_ticks, labels.y_tick)) {
    result += straight_line(left_, y(value), right_, y(value), "grid");
    result += label(left_ - 8, y(value) + 4, words, "end", "tick");
  }
  result += straight_line(left_, bottom_, right_, bottom_, "axis");
  result += label((left_ + right_) / 2, bottom_ + 36, labels.x, "middle", "name");
  // What the vertical axis means stands above it, to be read without turning one's head.
  result += label(left_, top_ - 10, labels.title, "start", "panel");
  if (!labels.y.empty()) result += label(right_, top_ - 10, labels.y, "end", "name");
  return result;
}

Markup label(double x, double y, const std::string& words, const std::string& anchor, const std::string& style) {
  return element("text", {{"x", coordinate(x)}, {"y", coordinate(y)}, {"text-anchor", anchor}, {"class", style}},
                 text(words));
}

std::string sequential_class(double share) { return colour_class('q', share, kSequentialColours); }
std::string diverging_class(double share) { return colour_class('d', (share + 1) / 2, kDivergingColours); }

ColourKey sequential_key(const std::string& low, const std::string& high) {
  ColourKey key;
  for (std::size_t n = 0; n < kSequentialColours; ++n)
    key.emplace_back("q" + std::to_string(n), n == 0 ? low : n + 1 == kSequentialColours ? high : "");
  return key;
}

ColourKey diverging_key(const std::string& low, const std::string& middle, const std::string& high) {
  ColourKey key;
  for (std::size_t n = 0; n < kDivergingColours; ++n)
    key.emplace_back("d" + std::to_string(n), n == 0                       ? low
                                              : n == kDivergingColours / 2 ? middle
                                              : n + 1 == kDivergingColours ? high
                                                                           : "");
  return key;
}

Markup colour_key(const ColourKey& key, double left, double top) {
  constexpr double kWidth = 16, kHeight = 9;
  Markup result;
  for (std::size_t n = 0; n < key.size(); ++n) {
    const auto& [colour, words] = key[n];
    const double x = left + kWidth * static_cast<double>(n);
    result += element("rect", {{"class", "cell " + colour},
                               {"x", coordinate(x)},
                               {"y", coordinate(top)},
                               {"width", coordinate(kWidth + 0.3)},
                               {"height", coordinate(kHeight)}});
    if (words.empty()) continue;
    const bool first = n == 0, last = n + 1 == key.size();
    result += label(first  ? x
                    : last ? x + kWidth
                           : x + kWidth / 2,
                    top + kHeight + kLetter + 1, words,
                    first  ? "start"
                    : last ? "end"
                           : "middle",
                    "tick");
  }
  return result;
}

}  // namespace kvs
