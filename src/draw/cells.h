#pragma once

#include "draw/frame.h"

namespace kvs::draw {

/// The cells of a panel's map, those of one colour as one path: a large map stays small. In a page the group tells its
/// script what each cell holds.
Markup cell_shapes(const Frame& frame, Medium medium);

}  // namespace kvs::draw
