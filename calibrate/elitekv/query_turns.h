// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstddef>
#include <span>
#include <vector>

#include "core/tensor_view.h"

namespace kvs::inline calibrate {

/// Returns the factors of a query head's chunks, each as a complex number q₁ + i·q₂: 1 if the chunk stays rotated;
/// otherwise the factor that best compensates, over the text, for the missing rotation. Least squares of Σ_c (t_c − α_c
/// a_c − β_c b_c) over the pairs of AttentionPairs, where α + iβ gives the factor α − iβ, with a ridge of 1 % of each
/// feature's energy toward 1 (no change). The factors depend on the distances in the text, so on the length of its
/// windows. This project's method. It costs nothing at run time: the factors are merged into W_q.
/// @param pairs  [feature, feature] of the head
std::vector<std::complex<double>> query_turns(TensorView<const double, 2> pairs, std::span<const std::size_t> elite);

/// Multiplies the chunks of a head's rows of W_q [head_dim, columns] by `turns`.
void turn_rows(std::span<const std::complex<double>> turns, std::span<float> rows, std::size_t columns);

}  // namespace kvs::inline calibrate
