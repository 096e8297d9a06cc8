#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace kvs {

/// A figure in both formats, as file contents.
struct FigureImages {
  std::string svg, png;
};

/// Numbers for a gnuplot data block. Blocks are separated by two blank lines (gnuplot's `index`).
class FigureData {
 public:
  /// One line of columns. NaN and infinity become gaps.
  FigureData& row(std::span<const double> values);
  FigureData& row(std::initializer_list<double> values) { return row(std::span(values.begin(), values.size())); }
  /// A line that interrupts a curve.
  FigureData& blank();
  FigureData& next_block();
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

/// A gnuplot template with its variables and data. Templates (figures/*.gp) are part of the program.
class Figure {
 public:
  /// @param script         the template: draws one page, and reads only what was set here and in figures/style.gp
  /// @param width, height  the SVG's user units, `page_width` and `page_height` to the template; the PNG has twice as
  ///                       many pixels
  Figure(std::string_view script, double width, double height);

  /// `name = value` for the template.
  Figure& set(std::string_view name, double value);
  /// A label. Whatever it holds is drawn as it is: nothing in it is a command or a markup.
  Figure& set(std::string_view name, std::string_view label);
  /// A word of gnuplot's text markup or a list of tics that the program itself made, not anything from outside.
  Figure& set_raw(std::string_view name, std::string_view trusted);
  Figure& data(std::string_view name, const FigureData& data);

  /// Runs gnuplot in a private temporary directory.
  /// @throws Error kEnvironment if gnuplot is missing or fails (with its message); Interrupted.
  FigureImages render() const;

 private:
  std::string script_, definitions_;
  double width_, height_;
};

/// `label` as a gnuplot single-quoted string whose enhanced text shows exactly these characters; control characters
/// become blanks.
std::string figure_label(std::string_view label);

}  // namespace kvs
