#pragma once

#include <complex>
#include <cstddef>
#include <span>
#include <vector>

#include "core/tensor_view.h"

namespace kvs {

/// What a query head's chunks are multiplied by, each as a complex number q₁ + i·q₂: 1 where the chunk stays rotated,
/// and elsewhere what makes up best, over the text, for the rotation that is not done. The least squares of
/// Σ_c (t_c − α_c a_c − β_c b_c) over the pairs of AttentionPairs, α + iβ ↦ the factor α − iβ; with a ridge of 1 % of
/// each feature's energy toward 1, that is toward no change. Of distances the text has, so of its windows' length.
/// Ours; costs nothing at run time: the factors go into W_q.
/// @param pairs  [feature, feature] of the head
std::vector<std::complex<double>> query_turns(TensorView<const double, 2> pairs, std::span<const std::size_t> elite);

/// Multiplies the chunks of a head's rows of W_q [head_dim, columns] by `turns`.
void turn_rows(std::span<const std::complex<double>> turns, std::span<float> rows, std::size_t columns);

}  // namespace kvs
