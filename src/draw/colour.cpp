// SPDX-License-Identifier: Apache-2.0
#include "draw/colour.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <utility>

namespace kvs::draw {
namespace {

using Hex = std::uint32_t;

/// Okabe and Ito, Color Universal Design (2008), and grey.
constexpr std::array<Hex, kSeriesColours> kFileSeries{0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7,
                                                      0xE69F00, 0x56B4E9, 0x000000, 0x7A7A7A};
constexpr std::array<Hex, kSeriesColours> kLightSeries{0x0b62b0, 0xc2410c, 0x0f766e, 0x7c3aed,
                                                       0x946200, 0xbe185d, 0x475569, 0x3f7d20};
constexpr std::array<Hex, kSeriesColours> kDarkSeries{0x6cb2f5, 0xff9b6a, 0x4fd1b5, 0xb79bff,
                                                      0xe6c34a, 0xff8cc0, 0xa9b8cc, 0x9bd36b};
/// viridis.
constexpr std::array<Hex, 10> kFileSequential{0x440154, 0x482878, 0x3e4989, 0x31688e, 0x26828e,
                                              0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b, 0xfde725};
constexpr std::array<Hex, 12> kLightSequential{0xeef3f3, 0xcfe5e3, 0xafd8d2, 0x89c3c5, 0x5eacb8, 0x4193ae,
                                               0x3279a4, 0x296198, 0x264b88, 0x233777, 0x20275e, 0x1b1846};
constexpr std::array<Hex, 12> kDarkSequential{0x1e252b, 0x203142, 0x203e5a, 0x234e74, 0x26608f, 0x2d76a1,
                                              0x388dae, 0x4da4b7, 0x6cbabb, 0x8dcfbf, 0xbae1c9, 0xe4f3d2};
/// ColorBrewer's RdBu; negative values are blue.
constexpr std::array<Hex, 9> kFileDiverging{0x2166ac, 0x4393c3, 0x92c5de, 0xd1e5f0, 0xf7f7f7,
                                            0xfddbc7, 0xf4a582, 0xd6604d, 0xb2182b};
constexpr std::array<Hex, 13> kLightDiverging{0x1d4f8f, 0x3c71ac, 0x5b93c9, 0x88b3d9, 0xb5d3e8, 0xd3e2ec, 0xf1f1ef,
                                              0xf4ddcf, 0xf6c9ae, 0xeaa485, 0xdc7f5c, 0xbf554b, 0xa2273a};
constexpr std::array<Hex, 13> kDarkDiverging{0x9fd0ff, 0x77b1eb, 0x4f93d6, 0x3e74ae, 0x2d5687, 0x2d425c, 0x2a2e33,
                                             0x543732, 0x7d3c2d, 0xa6553d, 0xd16f4d, 0xe99b79, 0xffc7a6};

/// Colours of text, lines and backgrounds: names of CSS variables in a page, and their values in a file.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kInks{{{"paper", "#ffffff"},
                                                                              {"ink", "#222222"},
                                                                              {"muted", "#404040"},
                                                                              {"rule", "#bbbbbb"},
                                                                              {"grid", "#e4e4e4"},
                                                                              {"wash", "#f0f0f0"}}};

struct Role {
  std::string_view name, style;  // in `style`, $NAME is an entry of kInks and $c the colour
};
constexpr std::array kRoles{
    Role{"heading", "fill:$ink"},
    Role{"panel", "fill:$ink;font-size:13px;font-weight:bold"},
    Role{"name", "fill:$muted"},
    Role{"tick", "fill:$muted"},
    Role{"small", "font-size:9px"},
    Role{"note", "fill:$ink;font-size:11px;stroke:$paper;stroke-width:3px;stroke-linejoin:round;paint-order:stroke"},
    Role{"grid", "stroke:$grid;stroke-width:0.8;fill:none"},
    Role{"axis", "stroke:$muted;stroke-width:0.8;fill:none"},
    Role{"box", "stroke:$rule;stroke-width:0.8;fill:none"},
    Role{"shade", "fill:$wash"},
    Role{"zero", "stroke:$c;stroke-width:1.2;stroke-dasharray:5 4;fill:none"},
    Role{"whisker", "stroke:$c;stroke-width:1.5;opacity:0.65"},
    Role{"spread", "fill:$c;fill-opacity:0.18"},
    Role{"curve", "fill:none;stroke:$c;stroke-width:1.4;stroke-linejoin:round"},
    Role{"thin", "stroke-width:0.9"},
    Role{"front", "fill:none;stroke:$muted;stroke-width:1.5;stroke-dasharray:5 3"},
    Role{"bar", "fill:$c"},
    Role{"cell", "fill:none;stroke:$c;stroke-width:1.02;shape-rendering:crispEdges"},
    Role{"swatch", "fill:$c;shape-rendering:crispEdges"},
    Role{"mark", "fill:$c;stroke:$c;stroke-width:1.4"},
    Role{"hollow", "fill:$paper"},
    Role{"beaten", "opacity:0.6"}};
constexpr std::string_view kInkName = "muted";  // for Colour::Scale::kInk

constexpr double kPalest = 0.3;  // smallest position that Colour::Scale::kOrder uses on the page's scale
constexpr double kPalestViridis = 0.88;
constexpr std::size_t kFileLevels = 64;

std::string hex(Hex colour) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%06x", static_cast<unsigned>(colour & 0xFFFFFFU));
  return text.data();
}

/// Interpolates linearly between the stops.
Hex mixed(std::span<const Hex> stops, double place) {
  const double at = std::clamp(place, 0.0, 1.0) * static_cast<double>(stops.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(at), stops.size() - 2);
  const double share = at - static_cast<double>(low);
  Hex result = 0;
  for (const unsigned shift : {0U, 8U, 16U}) {
    const auto channel = [&](Hex colour) { return static_cast<double>(colour >> shift & 0xFFU); };
    result |= static_cast<Hex>(std::lround((1 - share) * channel(stops[low]) + share * channel(stops[low + 1])))
              << shift;
  }
  return result;
}

/// Returns the position from 0 to 1 on the scale as drawn.
double drawn_place(Colour colour, Medium medium) {
  switch (colour.scale) {
    case Colour::Scale::kDiverging:
      return (colour.place + 1) / 2;
    case Colour::Scale::kOrder:
      return medium == Medium::kFile ? kPalestViridis * colour.place : 1 - (1 - kPalest) * colour.place;
    default:
      return colour.place;
  }
}

std::string file_colour(Colour colour) {
  if (colour.scale == Colour::Scale::kInk) return "#767676";
  if (colour.scale == Colour::Scale::kSeries)
    return hex(kFileSeries[static_cast<std::size_t>(colour.place) % kSeriesColours]);
  const double place = drawn_place(colour, Medium::kFile);
  return hex(colour.scale == Colour::Scale::kDiverging ? mixed(kFileDiverging, place) : mixed(kFileSequential, place));
}

/// Returns the CSS class that colours a shape: "s3", "q11", "d0".
std::string page_class(Colour colour) {
  if (colour.scale == Colour::Scale::kInk) return "";
  if (colour.scale == Colour::Scale::kSeries)
    return "s" + std::to_string(static_cast<std::size_t>(colour.place) % kSeriesColours);
  const bool signs = colour.scale == Colour::Scale::kDiverging;
  const auto count = static_cast<double>(signs ? kLightDiverging.size() : kLightSequential.size());
  const double index = std::floor(drawn_place(colour, Medium::kPage) * count);
  return (signs ? "d" : "q") + std::to_string(static_cast<int>(std::clamp(index, 0.0, count - 1)));
}

/// Returns `style` with each $NAME replaced by its value.
template <class Value>
std::string filled(std::string_view style, Value value) {
  std::string text;
  while (!style.empty()) {
    const std::size_t mark = std::min(style.find('$'), style.size());
    text += style.substr(0, mark);
    style.remove_prefix(mark);
    if (style.empty()) break;
    const std::size_t end = std::min(style.find_first_of("; "), style.size());
    text += value(style.substr(1, end - 1));
    style.remove_prefix(end);
  }
  return text;
}

const Role* role_of(std::string_view name) {
  const auto* const role = std::ranges::find(kRoles, name, &Role::name);
  return role == kRoles.end() ? nullptr : role;
}

/// Adds the properties of `style`; an existing property of that name is replaced.
void add_properties(AttributeList& attributes, std::string_view style, const std::string& colour) {
  while (!style.empty()) {
    const std::size_t end = std::min(style.find(';'), style.size()), mark = style.find(':');
    const std::string_view name = style.substr(0, mark);
    std::string value = filled(style.substr(mark + 1, end - mark - 1), [&](std::string_view ink) {
      const auto* const row = std::ranges::find(kInks, ink, &decltype(kInks)::value_type::first);
      return row == kInks.end() ? colour : std::string(row->second);
    });
    const auto before = std::ranges::find(attributes, name, &AttributeList::value_type::first);
    if (before == attributes.end())
      attributes.emplace_back(name, std::move(value));
    else
      before->second = std::move(value);
    style.remove_prefix(std::min(end + 1, style.size()));
  }
}

void add_variables(std::string& css, char scale, std::span<const Hex> colours) {
  for (std::size_t n = 0; n < colours.size(); ++n)
    css += std::string("--") + scale + std::to_string(n) + ":" + hex(colours[n]) + ";";
}

}  // namespace

std::size_t levels(Colour::Scale scale, Medium medium) {
  if (scale == Colour::Scale::kSeries) return kSeriesColours;
  if (medium == Medium::kFile) return kFileLevels;
  return scale == Colour::Scale::kDiverging ? kLightDiverging.size() : kLightSequential.size();
}

std::size_t level_of(Colour colour, Medium medium) {
  const auto count = static_cast<double>(levels(colour.scale, medium));
  const double place = colour.scale == Colour::Scale::kDiverging ? (colour.place + 1) / 2 : colour.place;
  return static_cast<std::size_t>(std::clamp(std::floor(place * count), 0.0, count - 1));
}

Colour at_level(Colour::Scale scale, std::size_t level, Medium medium) {
  const double place = (static_cast<double>(level) + 0.5) / static_cast<double>(levels(scale, medium));
  return {scale, scale == Colour::Scale::kDiverging ? 2 * place - 1 : place};
}

AttributeList paint(Medium medium, std::string_view roles, Colour colour) {
  if (medium == Medium::kPage) {
    const std::string of_colour = page_class(colour);
    return {{"class", std::string(roles) + (of_colour.empty() ? "" : " " + of_colour)}};
  }
  AttributeList attributes;
  while (!roles.empty()) {
    const std::size_t end = std::min(roles.find(' '), roles.size());
    if (const Role* role = role_of(roles.substr(0, end))) add_properties(attributes, role->style, file_colour(colour));
    roles.remove_prefix(std::min(end + 1, roles.size()));
  }
  return attributes;
}

std::string page_style() {
  std::string css = ":root{";
  add_variables(css, 's', kLightSeries);
  add_variables(css, 'q', kLightSequential);
  add_variables(css, 'd', kLightDiverging);
  css += "}\n@media screen and (prefers-color-scheme:dark){:root{";
  add_variables(css, 's', kDarkSeries);
  add_variables(css, 'q', kDarkSequential);
  add_variables(css, 'd', kDarkDiverging);
  css += "}}\n";
  for (const auto& [scale, count] : {std::pair('s', kLightSeries.size()), std::pair('q', kLightSequential.size()),
                                     std::pair('d', kLightDiverging.size())})
    for (std::size_t n = 0; n < count; ++n) {
      const std::string name = scale + std::to_string(n);
      css += "." + name + "{--c:var(--" + name + ")}";
    }
  css += '\n';
  for (const Role& role : kRoles)
    css += "svg ." + std::string(role.name) + "{" +
           filled(role.style,
                  [](std::string_view ink) {
                    return ink == "c" ? "var(--c,var(--" + std::string(kInkName) + "))"
                                      : "var(--" + std::string(ink) + ")";
                  }) +
           "}\n";
  return css;
}

}  // namespace kvs::draw
