#pragma once

#include "draw/frame.h"

namespace kvs::draw {

/// A panel's notes. A note stands next to its place and covers no mark, no staircase and no other note; a note without
/// such a place is left out.
Markup note_texts(const Frame& frame, Medium medium);

}  // namespace kvs::draw
