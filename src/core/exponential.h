#pragma once

#include <string>

namespace kvs {

/// e^`exponent` for people, such as a perplexity of a mean NLL: "12.34", or "e^812.3" where no double holds it.
std::string exponential_text(double exponent, int digits = 4);
/// The same with the standard error that `error`, that of the exponent, makes: "12.34 ± 0.25", "e^812.3 (± 2.1 in the
/// exponent)"; without one where it is 0.
std::string exponential_with_error(double exponent, double error, int digits = 4);

}  // namespace kvs
