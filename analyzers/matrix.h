// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Dense>
#include <cstddef>

namespace kvs::inline analyzers {

/// Row-major, like all tensors. Only for sources of this folder.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr Eigen::Index to_index(std::size_t value) noexcept { return static_cast<Eigen::Index>(value); }

}  // namespace kvs::inline analyzers
