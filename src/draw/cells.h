// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "draw/frame.h"

namespace kvs::draw {

/// Draws the cells of a panel's map. Cells of one colour are one path, so that a large map stays small. In a page, the
/// group holds each cell's text for the page's script.
Markup cell_shapes(const Frame& frame, Medium medium);

}  // namespace kvs::draw
