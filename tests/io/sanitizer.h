// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Is there if the program is linked with AddressSanitizer. The tests are not instrumented: no macro tells them.
extern "C" void __asan_init() __attribute__((weak));

namespace kvs::test {

/// Whether the tested code is instrumented by AddressSanitizer, which keeps freed memory, takes address space of its
/// own, and ends a program that has no memory left.
inline bool sanitized() { return &__asan_init != nullptr; }

}  // namespace kvs::test
