// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/error.h"

namespace kvs::fuzz {

/// Ends the process in a way that both libFuzzer and ctest count as a crash.
[[noreturn]] inline void report(const char* what) {
  std::fprintf(stderr, "fuzz target: %s\n", what);
  std::abort();
}

inline void require(bool holds, const char* what) {
  if (!holds) report(what);
}

/// Runs `act`, which reads hostile bytes. It may succeed or refuse them with an input, unsupported or data error of one
/// clean line. Every other exception, including kInternal, is a finding.
template <class Act>
void accept_or_refuse(Act&& act) {
  try {
    act();
  } catch (const Error& error) {
    const ErrorCode code = error.code();
    require(code == ErrorCode::kInput || code == ErrorCode::kUnsupported || code == ErrorCode::kData, error.what());
    for (const char c : std::string_view(error.what()))
      require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a message with a control character");
  }
}

}  // namespace kvs::fuzz
