// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kvtc/calibration.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "calibrate/kvtc/block.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "kernels/row_format.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::size_t kGroupRounds = 8;
constexpr double kCloseEnough = 0.003;  // of the budget

/// Tokens of a pool at the time when it stores most.
struct PoolTokens {
  std::size_t sinks = 0, waiting = 0, coded = 0;
};

PoolTokens tokens_held(const KvtcLayers& pool, const KvtcPlan& plan) noexcept {
  const std::size_t all = pool.window > 0 ? std::min(pool.window, plan.tokens) : plan.tokens;
  PoolTokens held{.sinks = std::min(all, plan.held.sinks)};
  held.waiting = std::min(all - held.sinks, plan.held.recent + plan.held.block);
  held.coded = std::max<std::size_t>(1, all - held.sinks - held.waiting);
  return held;
}

std::size_t waiting_bytes(const KvtcHeads& heads, KvtcRecent type) noexcept {
  const bool coded = type == KvtcRecent::kQ8_0 && heads.head_dim % 32 == 0;
  return 2 * heads.kv_heads * rows_bytes({.kind = coded ? RowKind::kQ8_0 : RowKind::kF16}, heads.head_dim, 1);
}

/// Groups of all pools for some bits a value, and what they take.
struct BitPlan {
  std::vector<KvtcPool> pools;  // groups alone
  double bits = 0;
  double bytes = 0;       // of the budget's document, after the entropy coder
  double code_bytes = 0;  // of a token
};

std::vector<KvtcGroup> groups_of(const KvtcBasis& basis, double bits) {
  const double budget = bits * static_cast<double>(basis.mean.size());
  std::vector<KvtcGroup> groups = basis.errors->plan(static_cast<std::size_t>(budget)).groups;
  if (groups.empty()) groups.push_back({kKvtcSizes[1], KvtcType::kInt2});
  return groups;
}

/// Returns the kept tokens [first, first + count), the components that groups code.
std::vector<float> rows_of(const KvtcBasis& basis, std::size_t components, std::size_t first, std::size_t count) {
  std::vector<float> rows;
  rows.reserve(count * components);
  for (std::size_t token = first; token < first + count; ++token) {
    const auto row = basis.samples.begin() + static_cast<std::ptrdiff_t>(token * basis.components);
    rows.insert(rows.end(), row, row + static_cast<std::ptrdiff_t>(components));
  }
  return rows;
}

/// Returns the bytes of a token of a pool after the entropy coder, mean of the kept tokens.
double coded_bytes(const KvtcPool& pool, const KvtcBasis& keys, const KvtcBasis& values, std::size_t run) {
  const std::size_t tokens = keys.samples.size() / keys.components;
  run = std::min(run, tokens);
  std::size_t bytes = 0, coded = 0;
  for (std::size_t first = 0; first + run <= tokens; first += run, coded += run)
    bytes += encode_block({rows_of(keys, pool.keys.components(), first, run),
                           rows_of(values, pool.values.components(), first, run)},
                          pool, run)
                 .bytes();
  return static_cast<double>(bytes) / static_cast<double>(coded);
}

BitPlan bit_plan(const KvtcBases& bases, const KvtcMoments& moments, const KvtcPlan& plan, double bits) {
  BitPlan found{.pools = {}, .bits = bits};
  for (std::size_t n = 0; n < bases.pools(); ++n) {
    const KvtcBasis &keys = bases.of(n, KvtcMoments::kKeys), &values = bases.of(n, KvtcMoments::kValues);
    KvtcPool& pool = found.pools.emplace_back();
    pool.layers = moments.pools()[n].layers;
    pool.keys.groups = groups_of(keys, bits);
    pool.values.groups = groups_of(values, bits);
    const double bytes = coded_bytes(pool, keys, values, moments.run());
    found.code_bytes += bytes;
    found.bytes += bytes * static_cast<double>(tokens_held(moments.pools()[n], plan).coded);
  }
  return found;
}

/// Sets means and the rows of the bases that groups code.
void add_bases(const KvtcBases& bases, std::vector<KvtcPool>& pools) {
  for (std::size_t n = 0; n < pools.size(); ++n)
    for (const auto& [side, of] :
         {std::pair(&pools[n].keys, KvtcMoments::kKeys), std::pair(&pools[n].values, KvtcMoments::kValues)}) {
      const KvtcBasis& basis = bases.of(n, of);
      side->mean = basis.mean;
      side->basis.assign(basis.basis.begin(),
                         basis.basis.begin() + static_cast<std::ptrdiff_t>(side->components() * side->values()));
    }
}

}  // namespace

std::size_t kvtc_code_bytes(std::span<const KvtcLayers> pools, const KvtcPlan& plan) noexcept {
  std::size_t taken = 0;
  for (const KvtcLayers& pool : pools) {
    const PoolTokens held = tokens_held(pool, plan);
    for (const KvtcHeads& heads : pool.heads)
      taken += held.sinks * 2 * heads.values() * CacheBytes::kStoredValue +
               held.waiting * waiting_bytes(heads, plan.held.type);
  }
  return plan.bytes - std::min(plan.bytes, taken);
}

double kvtc_bits(std::span<const KvtcLayers> pools, const KvtcPlan& plan, double factor) noexcept {
  double values = 0;
  for (const KvtcLayers& pool : pools) values += 2 * static_cast<double>(tokens_held(pool, plan).coded * pool.values());
  constexpr double kMost = 8 + 2;  // fp8 with the shifts and scales of groups of 16
  return std::min(kMost, factor * 8 * static_cast<double>(kvtc_code_bytes(pools, plan)) / values);
}

KvtcConfig calibrate_kvtc(const KvtcBases& bases, const KvtcMoments& moments, const KvtcPlan& plan,
                          const KvtcProgress& progress) {
  const auto budget = static_cast<double>(kvtc_code_bytes(moments.pools(), plan));
  BitPlan best;
  double bits = kvtc_bits(moments.pools(), plan);
  for (std::size_t round = 0; round < kGroupRounds && bits > best.bits; ++round) {
    progress("groups", round, kGroupRounds);
    check_interrupt();
    BitPlan found = bit_plan(bases, moments, plan, bits);
    const bool fits = found.bytes <= budget, close = std::abs(found.bytes / budget - 1) < kCloseEnough;
    bits = std::min(bases.max_bits(), bits * budget / found.bytes * (fits ? 1 : 1 - kCloseEnough / 2));
    if (!fits) continue;
    best = std::move(found);
    if (close) break;
  }
  if (best.pools.empty())
    throw Error(ErrorCode::kUsage, "kvtc", "needs more for sinks, tokens that wait and the smallest groups");
  add_bases(bases, best.pools);
  return {.tokens = plan.held,
          .pools = std::move(best.pools),
          .window = plan.tokens,
          .bytes = plan.bytes,
          .bits = best.bits,
          .code_bytes = best.code_bytes};
}

}  // namespace kvs::inline calibrate
