// A libcudnn that is too old: all that is asked of it is its version.
#include <cstddef>

extern "C" std::size_t cudnnGetVersion() { return 91500; }
