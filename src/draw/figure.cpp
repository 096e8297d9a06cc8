#include "draw/figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/utf8.h"
#include "draw/gnuplot.h"
#include "embedded/figure_style.h"

namespace kvs {
namespace {

std::string number(double value) {
  if (!std::isfinite(value)) return "NaN";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.7g", value);
  return text.data();
}

void replace_all(std::string& text, std::string_view part, std::string_view by) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + by.size()))
    text.replace(at, part.size(), by);
}

/// What gnuplot 5.4 leaves undone.
std::string finished_svg(std::string svg) {
  replace_all(svg, "]]>", "]]&gt;");  // of labels: XML has no other use for it
  // Viewers smooth images unless they are told not to; older ones know the first of the words. No label has a line end.
  replace_all(svg, "\n<image ", "\n<image style='image-rendering:optimizeSpeed;image-rendering:pixelated' ");
  return svg;
}

}  // namespace

FigureData& FigureData::row(std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) text_ += ' ';
    text_ += number(values[i]);
  }
  text_ += '\n';
  return *this;
}

FigureData& FigureData::blank() {
  text_ += '\n';
  return *this;
}

FigureData& FigureData::next_block() {
  text_ += "\n\n";
  return *this;
}

Figure::Figure(std::string_view script, double width, double height)
    : script_(script), width_(width), height_(height) {}

Figure& Figure::set(std::string_view name, double value) {
  definitions_ += std::string(name) + " = " + number(value) + "\n";
  return *this;
}

Figure& Figure::set(std::string_view name, std::string_view label) { return set_raw(name, figure_label(label)); }

Figure& Figure::set_raw(std::string_view name, std::string_view trusted) {
  definitions_ += std::string(name) + " = " + std::string(trusted) + "\n";
  return *this;
}

Figure& Figure::data(std::string_view name, const FigureData& data) {
  definitions_ += "$" + std::string(name) + " << END_OF_DATA\n" + data.text() + "END_OF_DATA\n";
  return *this;
}

FigureImages Figure::render() const {
  // The PNG is drawn at twice the size, so that it prints well; everything in it is scaled alike.
  const std::string size = number(width_) + "," + number(height_);
  const std::string doubled = number(2 * width_) + "," + number(2 * height_);
  const std::string page =
      "\n" + std::string(embedded::figure_style) + "\n" + script_ + "\nunset multiplot\nunset output\nreset\n";
  // Reals, because gnuplot divides integers as integers.
  const std::string extent = "page_width = 1.0 * " + number(width_) + "\npage_height = 1.0 * " + number(height_) + "\n";
  const std::string script =
      "set encoding utf8\n" + extent + definitions_ + "set terminal svg size " + size +
      " enhanced font 'DejaVu Sans,10' background 'white' linewidth 1\nset output svg_file\nis_svg = 1" + page +
      "set terminal pngcairo size " + doubled +
      " enhanced font 'DejaVu Sans,10' fontscale 2 linewidth 2 pointscale 2 background 'white'\n" +
      "set output png_file\nis_svg = 0" + page;
  std::vector<std::string> files = run_gnuplot(script, std::array<std::string, 2>{"svg_file", "png_file"});
  return {finished_svg(std::move(files[0])), std::move(files[1])};
}

std::string figure_label(std::string_view label) {
  std::string text = "'";
  for (std::size_t at = 0; at < label.size();) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(label.substr(at)));
    const std::string_view letter = label.substr(at, length);
    at += length;
    if (is_control(letter)) {
      text += ' ';
    } else if (utf8_length(letter) == 0 || letter == "\uFFFE" || letter == "\uFFFF") {  // no XML has these
      text += "\uFFFD";
    } else if (letter == "'") {
      text += "''";
    } else {
      if (std::string_view("\\{}^_@&~").find(letter) != std::string_view::npos) text += '\\';
      text += letter;
    }
  }
  return text + "'";
}

}  // namespace kvs
