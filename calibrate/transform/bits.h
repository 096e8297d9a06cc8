#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace kvs {

inline constexpr std::size_t kMostBits = 8;  // of a coefficient

/// Mean squared error of a Gaussian of unit variance, trellis-coded with 0 … 8 bits (measured with fitted books,
/// docs/transform.md). What another bit takes away falls with every bit, so that a greedy allocation is the best one.
inline constexpr std::array<double, kMostBits + 1> kTrellisError{1,      0.2715, 0.0759,  0.0208, 0.0058,
                                                                 0.0018, 0.0005, 0.00015, 0.00005};

/// Bits of each coefficient of several layers that leave the least Σ variance · kTrellisError[bits], under one budget:
/// each next bit goes where it takes away most. Source: reverse water-filling, Cover & Thomas (2006), section 10.3.3;
/// greedy for convex errors, Fox (1966), Oper. Res. 14(2).
/// @param variances  [layer][coefficient]: what an error of 1 costs, in the same unit in all layers
/// @param bytes      of the codes of a token, all layers: each layer's are whole bytes
/// @return [layer][coefficient]
std::vector<std::vector<std::size_t>> allocate_bits(std::span<const std::vector<double>> variances, std::size_t bytes);

/// Bytes of a layer's codes.
std::size_t code_bytes(std::span<const std::size_t> bits) noexcept;

}  // namespace kvs
