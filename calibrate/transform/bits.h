#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace kvs {

inline constexpr std::size_t kMaxBits = 8;  // of a coefficient

/// Mean squared error of a Gaussian of unit variance, trellis-coded with 0 … 8 bits (measured with fitted books,
/// docs/transform.md). What another bit takes away falls with every bit, so that a greedy allocation is the best one.
inline constexpr std::array<double, kMaxBits + 1> kTrellisError{1,      0.2715, 0.0759,  0.0208, 0.0058,
                                                                0.0018, 0.0005, 0.00015, 0.00005};

/// Rows of coefficients that are coded with as many bytes as each other.
struct CodeRows {
  std::vector<std::vector<double>> variances;  // [row][coefficient]: what an error of 1 costs
  std::size_t tokens = 1;                      // whose codes are held
};

/// Bits of each coefficient that leave the least Σ variance · kTrellisError[bits] under one budget of bytes: each next
/// byte of all rows of some CodeRows goes where it takes away most for what it takes, and its bits, in each row, to the
/// coefficients where they do. Source: reverse water-filling, Cover & Thomas (2006), section 10.3.3; greedy for convex
/// errors, Fox (1966), Oper. Res. 14(2).
/// @param all    with costs in the same unit
/// @param bytes  of all codes
/// @return [rows][row][coefficient]
using CodeBits = std::vector<std::vector<std::size_t>>;
std::vector<CodeBits> allocate_bits(std::span<const CodeRows> all, std::size_t bytes);

/// Bytes of a row's codes.
std::size_t code_bytes(std::span<const std::size_t> bits) noexcept;

}  // namespace kvs
