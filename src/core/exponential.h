// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kvs::inline core {

/// Formats e^`exponent` for people, e.g. the perplexity of a mean NLL: "12.34", or "e^812.3" if it overflows a double.
std::string exponential_text(double exponent, int digits = 4);
/// Like exponential_text(), with the standard error that follows from `error`, the standard error of `exponent`: "12.34
/// ± 0.25" or "e^812.3 (± 2.1 in the exponent)". Omits the standard error if `error` is 0.
std::string exponential_with_error(double exponent, double error, int digits = 4);

}  // namespace kvs::inline core
