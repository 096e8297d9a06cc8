// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "draw/frame.h"

namespace kvs::draw {

/// Draws text at a position. @param anchor  start, middle or end
Markup label(Medium medium, double x, double y, const std::string& words, const std::string& anchor,
             std::string_view roles);
Markup line(Medium medium, double x1, double y1, double x2, double y2, std::string_view roles, Colour colour = {});
Markup rectangle(Medium medium, double x, double y, double width, double height, std::string_view roles,
                 Colour colour = {});

/// Draws the content of a panel without its axes; notes are in front.
Markup plot(const Frame& frame, Medium medium);

}  // namespace kvs::draw
