// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "kernels/cpu/simd/functions.h"

// Goto and van de Geijn (2008), doi:10.1145/1356052.1356053. A slice of B's panel in depth (k) that fits the
// first-level cache is multiplied by strips of rows, whose sums stay in registers. Sums that are stored between two
// slices keep all their bits.
namespace kvs::cpu {
inline namespace KVS_ISA {
namespace {

constexpr std::size_t kVectors = kPanel / kLanes;  // registers per panel and row
#if defined(__AVX512F__)
constexpr std::size_t kAccumulators = 24, kMaxRows = 12;  // of 32 registers
#else
constexpr std::size_t kAccumulators = 12, kMaxRows = 6;  // of 16 registers
#endif

/// Returns how many panels `rows` rows process at once: enough sums in flight to hide the latency of an addition.
constexpr std::size_t panels_at_once(std::size_t rows) {
  const std::size_t fit = kAccumulators / (rows * kVectors);
  return fit < 1 ? 1 : (fit < 4 ? fit : 4);
}
constexpr std::size_t kMaxPanels = panels_at_once(1);
constexpr std::size_t kMaxDepth = 384;  // 24 KiB a panel

/// A part of a product: `depth` values of k. Panel is float, or std::uint16_t for bf16 that is widened when it is read.
template <class Panel>
struct Strip {
  const float* x;  // [row, x_stride]
  std::size_t x_stride;
  const Panel* panels;  // [panel, panel_stride]
  std::size_t panel_stride, depth;
  float* out;  // [row, out_stride]
  std::size_t out_stride;
  bool go_on;  // start from the sums in `out` instead of 0
};

template <std::size_t kRows, std::size_t kPanels, class Panel>
void multiply_strip(const Strip<Panel>& s) {
  Lanes sums[kRows][kPanels * kVectors];
  for (std::size_t row = 0; row < kRows; ++row)
    for (std::size_t i = 0; i < kPanels * kVectors; ++i)
      sums[row][i] = s.go_on ? load(s.out + row * s.out_stride + i * kLanes) : Lanes{};
  for (std::size_t k = 0; k < s.depth; ++k) {
    Lanes columns[kPanels * kVectors];
    for (std::size_t panel = 0; panel < kPanels; ++panel)
      for (std::size_t i = 0; i < kVectors; ++i)
        columns[panel * kVectors + i] = load(s.panels + panel * s.panel_stride + k * kPanel + i * kLanes);
#pragma GCC unroll 12
    for (std::size_t row = 0; row < kRows; ++row) {
      const Lanes value = splat(s.x[row * s.x_stride + k]);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kPanels * kVectors; ++i) sums[row][i] = multiply_add(value, columns[i], sums[row][i]);
    }
  }
  for (std::size_t row = 0; row < kRows; ++row)
    for (std::size_t i = 0; i < kPanels * kVectors; ++i) store(s.out + row * s.out_stride + i * kLanes, sums[row][i]);
}

/// Multiplies a strip of at most kMaxRows rows with the panels that the caller processes at once, or with one panel.
template <std::size_t kRows = kMaxRows, class Panel>
void multiply_rows(const Strip<Panel>& strip, std::size_t rows, std::size_t panels) {
  if (rows < kRows) {
    if constexpr (kRows > 1) multiply_rows<kRows - 1>(strip, rows, panels);
  } else if (panels == 1) {
    multiply_strip<kRows, 1>(strip);
  } else if constexpr (panels_at_once(kRows) > 1) {
    multiply_strip<kRows, panels_at_once(kRows)>(strip);
  }
}

void widen(const std::uint16_t* from, std::size_t count, float* to) {
  std::size_t at = 0;
  for (; at + kLanes <= count; at += kLanes) store(to + at, load(from + at));
  for (; at < count; ++at) {
    const std::uint32_t bits = static_cast<std::uint32_t>(from[at]) << 16;
    std::memcpy(to + at, &bits, sizeof(bits));
  }
}

/// Computes a product, one depth slice after the other.
class Multiplication {
 public:
  explicit Multiplication(const PanelProduct& p)
      : p_(p),
        blocks_((p.k + kMaxDepth - 1) / kMaxDepth),
        depth_((p.k + blocks_ - 1) / blocks_),
        row_stride_(depth_ + kPanel),  // not a power of two: such rows would share a few cache sets
        at_once_(panels_at_once(p.m < kMaxRows ? p.m : kMaxRows)) {
    rows_ = p.scratch;
    panels_ = rows_ + (copies_rows(p.k, p.bf16) ? (p.m * row_stride_ + kPanel) / kPanel * kPanel : 0);
    edge_ = panels_ + (p.bf16 ? kMaxPanels * depth_ * kPanel : 0);
    sums_ = edge_ + p.m * kPanel;
    to_ = p.accumulate ? sums_ : p.out;
  }

  static bool copies_rows(std::size_t k, bool bf16) { return bf16 || k * sizeof(float) % 2048 == 0; }

  void run() {
    for (std::size_t block = 0; block < blocks_; ++block) {
      const std::size_t first = block * depth_;
      take_depth(first, p_.k - first < depth_ ? p_.k - first : depth_);
    }
    finish();
  }

 private:
  std::size_t columns_at(std::size_t column) const { return p_.n - column < kPanel ? p_.n - column : kPanel; }

  /// Returns the rows of x at this depth, in f32.
  const float* rows_at(std::size_t first, std::size_t depth, std::size_t& stride) {
    stride = p_.k;
    if (!copies_rows(p_.k, p_.bf16)) return static_cast<const float*>(p_.x) + first;
    stride = row_stride_;
    for (std::size_t row = 0; row < p_.m; ++row) {
      if (p_.bf16)
        widen(static_cast<const std::uint16_t*>(p_.x) + row * p_.k + first, depth, rows_ + row * stride);
      else
        std::memcpy(rows_ + row * stride, static_cast<const float*>(p_.x) + row * p_.k + first, depth * sizeof(float));
    }
    return rows_;
  }

  void take_depth(std::size_t first, std::size_t depth) {
    std::size_t x_stride = 0;
    const float* x = rows_at(first, depth, x_stride);
    const std::size_t panels = p_.n / kPanel;
    for (std::size_t panel = 0; panel < panels;) {
      const std::size_t count = panels - panel >= at_once_ ? at_once_ : 1;
      multiply_panels(x, x_stride, panel, count, first, depth, to_ + panel * kPanel, p_.n);
      panel += count;
    }
    if (p_.n % kPanel != 0) multiply_panels(x, x_stride, panels, 1, first, depth, edge_, kPanel);
  }

  void multiply_panels(const float* x, std::size_t x_stride, std::size_t panel, std::size_t count, std::size_t first,
                       std::size_t depth, float* to, std::size_t stride) {
    const auto strips = [&](const auto* panels, std::size_t panel_stride) {
      multiply_strips<std::remove_cvref_t<decltype(*panels)>>({.x = x,
                                                               .x_stride = x_stride,
                                                               .panels = panels,
                                                               .panel_stride = panel_stride,
                                                               .depth = depth,
                                                               .out = to,
                                                               .out_stride = stride,
                                                               .go_on = first > 0},
                                                              count);
    };
    const std::size_t at = panel * p_.panel_stride + first * kPanel;
    if (!p_.bf16) return strips(static_cast<const float*>(p_.panels) + at, p_.panel_stride);
    const auto* const narrow = static_cast<const std::uint16_t*>(p_.panels) + at;
    if (p_.m <= kMaxRows) return strips(narrow, p_.panel_stride);  // they are read once
    for (std::size_t i = 0; i < count; ++i)
      widen(narrow + i * p_.panel_stride, depth * kPanel, panels_ + i * depth * kPanel);
    strips(panels_, depth * kPanel);
  }

  template <class Panel>
  void multiply_strips(Strip<Panel> strip, std::size_t count) {
    const float* const x = strip.x;
    float* const to = strip.out;
    for (std::size_t row = 0; row < p_.m; row += kMaxRows) {
      const std::size_t rows = p_.m - row < kMaxRows ? p_.m - row : kMaxRows;
      strip.x = x + row * strip.x_stride;
      strip.out = to + row * strip.out_stride;
      if (count == 1 || panels_at_once(rows) == count) {
        multiply_rows(strip, rows, count);
        continue;
      }
      Strip<Panel> single = strip;  // a last strip with fewer rows, which would process more panels at once
      for (std::size_t i = 0; i < count; ++i, single.panels += strip.panel_stride, single.out += kPanel)
        multiply_rows(single, rows, 1);
    }
  }

  /// Handles the panel at the right edge, the bias and the accumulation.
  void finish() {
    const std::size_t whole = p_.n / kPanel * kPanel;
    for (std::size_t row = 0; row < p_.m; ++row) {
      float* out = p_.out + row * p_.n;
      const float* sums = to_ + row * p_.n;
      const float* edge = edge_ + row * kPanel;
      if (p_.accumulate || p_.bias != nullptr) {
        for (std::size_t i = 0; i < whole; ++i) out[i] = with(sums[i], out[i], i);
      }
      for (std::size_t i = whole; i < p_.n; ++i) out[i] = with(edge[i - whole], out[i], i);
    }
  }

  float with(float sum, float before, std::size_t column) const {
    const float biased = p_.bias != nullptr ? sum + p_.bias[column] : sum;
    return p_.accumulate ? before + biased : biased;
  }

  const PanelProduct& p_;
  std::size_t blocks_, depth_, row_stride_, at_once_;
  float *rows_, *panels_, *edge_, *sums_, *to_;
};

}  // namespace

std::size_t panel_scratch(std::size_t m, std::size_t n, std::size_t k, bool bf16, bool accumulate) noexcept {
  const std::size_t depth = k < kMaxDepth ? k : kMaxDepth;
  const std::size_t rows = Multiplication::copies_rows(k, bf16) ? m * (depth + kPanel) + kPanel : 0;
  return rows + (bf16 ? kMaxPanels * depth * kPanel : 0) + m * kPanel + (accumulate ? m * n : 0);
}

void multiply(const PanelProduct& product) noexcept { Multiplication(product).run(); }

}  // namespace KVS_ISA
}  // namespace kvs::cpu
