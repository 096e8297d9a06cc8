#include "kernels/spectral_ops.h"

#include "core/error.h"

namespace kvs::inline kernels {

void check_grid(const std::array<std::size_t, 3>& x, const std::array<std::size_t, 4>& spectrum, const BinGrid& grid) {
  if (x[1] > grid.samples || spectrum != std::array<std::size_t, 4>{x[0], grid.bins.size(), 2, x[2]})
    throw Error(ErrorCode::kInternal, "spectrum", "tokens, grid and bins do not fit together");
}

}  // namespace kvs::inline kernels
