// SPDX-License-Identifier: Apache-2.0
// A libcudnn that is too old: the tests only ask for its version.
#include <cstddef>

extern "C" std::size_t cudnnGetVersion() { return 91500; }
