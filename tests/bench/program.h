// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <exception>
#include <string>

#include "core/error.h"

namespace kvs::bench {

/// main() of a program of this folder: calls `run` with at least `least` arguments, and reports an exception as one
/// line on stderr and an exit status. @param usage  begins with the program's name
inline int run_program(int argc, char** argv, int least, const std::string& usage, int (*run)(int, char**)) {
  const std::string name = usage.substr(0, usage.find(' '));
  if (argc - 1 < least) {
    std::fprintf(stderr, "usage: %s\n", usage.c_str());
    return static_cast<int>(ErrorCode::kUsage);
  }
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: error: %s\n", name.c_str(), error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: error: %s\n", name.c_str(), error.what());
    return static_cast<int>(ErrorCode::kInternal);
  }
}

}  // namespace kvs::bench
