#pragma once

#include "draw/frame.h"

namespace kvs::draw {

/// A panel's notes beside their places, each where it covers no mark, no staircase and no other note; those that find
/// no such place are left out.
Markup note_texts(const Frame& frame, Medium medium);

}  // namespace kvs::draw
