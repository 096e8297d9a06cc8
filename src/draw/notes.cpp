// SPDX-License-Identifier: Apache-2.0
#include "draw/notes.h"

#include <algorithm>

#include "draw/plot.h"
#include "draw/text_width.h"

namespace kvs::draw {
namespace {

constexpr double kNoteSize = 11, kNoteHeight = 13, kBeside = 9;

struct Box {
  double left, top, right, bottom;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

/// Adds the boxes of the segments of a step line.
void add_steps(const Frame& frame, const Series& series, std::vector<Box>& taken) {
  double y = 0;
  for (std::size_t n = 0; n < series.points.size(); ++n) {
    const double x = frame.x(series.points[n].x), next = frame.y(series.points[n].y);
    if (n > 0) {
      taken.push_back({frame.x(series.points[n - 1].x) - 1, y - 1, x + 1, y + 1});
      taken.push_back({x - 1, std::min(y, next) - 1, x + 1, std::max(y, next) + 1});
    }
    y = next;
  }
  if (!series.points.empty()) taken.push_back({frame.x(series.points.back().x) - 1, y - 1, frame.right(), y + 1});
}

std::vector<Box> taken_by(const Frame& frame) {
  std::vector<Box> taken;
  for (const Series& series : frame.panel->series) {
    if (series.join == Series::Join::kSteps) add_steps(frame, series, taken);
    const double size = series.mark + 1.5;
    for (const Point& point : series.points) {
      const double x = frame.x(point.x), y = frame.y(point.y);
      if (series.mark > 0) taken.push_back({x - size, y - size, x + size, y + size});
    }
  }
  return taken;
}

/// Draws a note at the first free one of four positions and marks that position as taken.
Markup note_text(const Frame& frame, Medium medium, const Note& note, std::vector<Box>& taken) {
  const double x = frame.x(note.x), y = frame.y(note.y), width = text_width(note.words, kNoteSize);
  for (const double dy : {-8.0, 18.0})
    for (const bool right : {true, false}) {
      const double left = right ? x + kBeside : x - kBeside - width;
      const Box box{left, y + dy - kNoteHeight + 3, left + width, y + dy + 3};
      if (box.left < frame.left || box.right > frame.right() || box.top < frame.top || box.bottom > frame.bottom())
        continue;
      if (std::ranges::any_of(taken, [&](const Box& other) { return box.meets(other); })) continue;
      taken.push_back(box);
      return label(medium, right ? x + kBeside : x - kBeside, y + dy, note.words, right ? "start" : "end", "note");
    }
  return {};
}

}  // namespace

Markup note_texts(const Frame& frame, Medium medium) {
  if (frame.panel->notes.empty()) return {};
  std::vector<Box> taken = taken_by(frame);
  Markup result;
  for (const Note& note : frame.panel->notes) result += note_text(frame, medium, note, taken);
  return result;
}

}  // namespace kvs::draw
