// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace kvs::inline calibrate {

inline constexpr std::size_t kMaxBits = 8;  // per coefficient

/// Mean squared error of trellis-coding a Gaussian of unit variance with 0 … 8 bits (measured with fitted books,
/// docs/transform.md). The gain of another bit falls with every bit, so a greedy allocation is optimal.
inline constexpr std::array<double, kMaxBits + 1> kTrellisError{1,      0.2715, 0.0759,  0.0208, 0.0058,
                                                                0.0018, 0.0005, 0.00015, 0.00005};

/// Rows of coefficients that are all coded with the same number of bytes.
struct CodeRows {
  std::vector<std::vector<double>> variances;  // [row][coefficient]: cost of an error of 1
  std::size_t tokens = 1;                      // number of tokens with stored codes
};

/// Allocates bits to coefficients to minimise Σ variance · kTrellisError[bits] under one budget of bytes. Each next
/// byte goes to all rows of the CodeRows in which it gains most for its size. Its bits go, in each row, to the
/// coefficients with the largest gain. Source: reverse water-filling, Cover & Thomas (2006), section 10.3.3; greedy for
/// convex errors, Fox (1966), Oper. Res. 14(2).
/// @param all    with costs in the same unit
/// @param bytes  of all codes
/// @return [rows][row][coefficient]
using CodeBits = std::vector<std::vector<std::size_t>>;
std::vector<CodeBits> allocate_bits(std::span<const CodeRows> all, std::size_t bytes);

/// Returns the bytes of a row's codes.
std::size_t code_bytes(std::span<const std::size_t> bits) noexcept;

}  // namespace kvs::inline calibrate
