#pragma once

#include <Eigen/Dense>
#include <cstddef>

namespace kvs {

/// Row-major, as all tensors are. For sources of this folder only.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr Eigen::Index to_index(std::size_t value) noexcept { return static_cast<Eigen::Index>(value); }

}  // namespace kvs
