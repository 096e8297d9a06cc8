// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "draw/layout.h"

namespace kvs::draw {

/// Draws shades and grid lines, which lie behind the values.
Markup grid(const PlacedPanel& placed, const Layout& layout, Medium medium);
/// Draws axes, ticks with their labels, names, the title, and the panel's colour bar.
Markup surroundings(const PlacedPanel& placed, const Layout& layout, bool dense, Medium medium);
/// Draws the axis names and the colour bar that all panels share.
Markup common_surroundings(const Layout& layout, Medium medium);

}  // namespace kvs::draw
