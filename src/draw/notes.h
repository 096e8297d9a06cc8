// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "draw/frame.h"

namespace kvs::draw {

/// Draws the notes of a panel. A note stands next to its point and covers no mark, no step line and no other note. A
/// note without such a position is left out.
Markup note_texts(const Frame& frame, Medium medium);

}  // namespace kvs::draw
