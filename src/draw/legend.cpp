// SPDX-License-Identifier: Apache-2.0
#include "draw/legend.h"

#include "draw/plot.h"
#include "draw/text_width.h"

namespace kvs::draw {
namespace {

constexpr double kSample = 24, kLetters = 12, kRow = 19, kEntryGap = 16;
constexpr double kMarkSize = 4;

}  // namespace

Markup legend_sample(const LegendEntry& entry, double x, double y, Medium medium) {
  Markup mark =
      marker(medium, entry.look.form, entry.look.colour, x + kSample / 2, y, kMarkSize, entry.hollow ? "hollow" : "");
  const auto stroke = [&](std::string_view roles) {
    return line(medium, x + 1, y, x + kSample - 1, y, roles, entry.look.colour);
  };
  switch (entry.kind) {
    case LegendEntry::Kind::kMark:
      return mark;
    case LegendEntry::Kind::kBar:
      return rectangle(medium, x + 6, y - 5, 12, 10, "bar", entry.look.colour);
    case LegendEntry::Kind::kRule:
      return stroke("zero");
    case LegendEntry::Kind::kSteps:
      return stroke("front");
    case LegendEntry::Kind::kLine:
      return entry.line_and_mark ? stroke("curve") + mark : stroke("curve");
  }
  return {};
}

PlacedLegend placed_legend(const std::vector<LegendEntry>& entries, double left, double top, double right) {
  PlacedLegend legend{{}, top};
  double x = left, y = top + kRow / 2;
  for (const LegendEntry& entry : entries) {
    const std::string name = shortened(entry.name, right - left - kSample - 5, kLetters);
    const double width = kSample + 5 + text_width(name, kLetters);
    if (x > left && x + width > right) {
      x = left;
      y += kRow;
    }
    legend.markup += legend_sample(entry, x, y, Medium::kFile) +
                     label(Medium::kFile, x + kSample + 5, y + 4.3, name, "start", "heading");
    x += width + kEntryGap;
  }
  if (!entries.empty()) legend.bottom = y + kRow / 2 + 4;
  return legend;
}

}  // namespace kvs::draw
