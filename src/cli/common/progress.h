#pragma once

#include "run/progress.h"

namespace kvs {
inline void remark(const std::string& line, bool quiet) { print_note(line, quiet); }
}  // namespace kvs
