#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "policy/cache_method.h"

namespace kvs {

/// How a token enters the spectrum. kCorrected: as sample N of a grid of M, every token at the same weight, which is
/// exact until the grid is full; then the grid is rebuilt with 2M samples. kLiteral: as the paper prints it,
/// S ← e^{−j2πk/M} (S + x/M) with M as the prefix left it, S the conjugate spectrum.
enum class FaedkvUpdate { kCorrected, kLiteral };

/// FAEDKV in one layer.
struct FaedkvOptions {
  std::size_t sinks = 10, recent = 50;  // S, R: tokens at both ends of the prefix that stay rows
  std::size_t chunks = 22;              // C: what the half spectrum is cut into
  std::vector<std::size_t> kept;        // chunks that stay, ascending
  bool before_rope = false;             // transform keys before RoPE (k_pre)
  bool age = false;  // tokens that leave the R recent ones enter the spectrum; off: what follows the prefix stays rows
  FaedkvUpdate update = FaedkvUpdate::kCorrected;
  bool half_dft = true;  // of the ablation's transforms a cache has this one
};

/// Why a prefix of so many tokens cannot be compressed, as "found …, expected …"; empty if it can.
std::string faedkv_obstacle(const FaedkvOptions& options, std::size_t prefix);

/// FAEDKV at work. A prefix attends to all of itself; at its end the N = P − S − R tokens between its sinks and its
/// recent ones become the kept chunks of their DFT. A few tokens read the spectrum as it is (Backend::attention); more
/// of them, and keys before RoPE, get the tokens back as rows first.
/// Source: FAEDKV, sections on compression and on the incremental transform. Deviations: the half spectrum, so that
/// states stay real; keys after RoPE by default; kCorrected. The paper's kLiteral update lays each token on the one M
/// tokens before it: S ← e^{−j2πk/M} (S + x/M) turns every sample by one place, so that the new one comes to stand
/// where the oldest one was turned to.
/// @throws Error kUnsupported in begin_prefix() for another transform; kInternal in end_prefix() for a prefix that has
/// an obstacle.
std::unique_ptr<LayerCache> make_faedkv_cache(const FaedkvOptions& options);
extern const CacheMethod kFaedkvMethod;

}  // namespace kvs
