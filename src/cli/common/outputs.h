#pragma once

#include "run/outputs.h"

namespace kvs {
inline std::filesystem::path beside(const std::filesystem::path& main, const std::string& suffix) {
  return sibling_path(main, suffix);
}
}  // namespace kvs
