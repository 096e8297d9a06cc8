// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kvs::inline core {

/// "1.5 GiB", "12 MiB".
std::string human_bytes(double bytes);
/// "2 min 5 s".
std::string human_seconds(double seconds);

}  // namespace kvs::inline core
