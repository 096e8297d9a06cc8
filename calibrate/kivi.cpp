// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "caches/stored_range.h"
#include "caches/token_rows.h"
#include "caches/token_steps.h"
#include "calibrate/method.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

struct KiviOptions {
  std::size_t bits = 4;    // 2 or 4
  std::size_t group = 32;  // g: number of tokens of a channel (keys) or channels of a token (values) that share a scale
  std::size_t residual = 128;  // R, a multiple of g: recent tokens that are not coded
};

RowType quantised(const KiviOptions& options, bool across_tokens) {
  return {{.kind = options.bits == 2 ? RowKind::kKivi2 : RowKind::kKivi4,
           .across_tokens = across_tokens,
           .group = static_cast<std::uint32_t>(options.group)}};
}

/// The oldest rows are coded, the others are not.
class WindowedRows {
 public:
  explicit WindowedRows(const RowType& types) : old_(types) {}

  std::size_t recent() const noexcept { return recent_.count() - gone_; }
  const StoredRows& old() const noexcept { return old_.held(); }
  StoredRows window() const { return stored_range(recent_.held(), gone_, recent()); }
  CacheBytes bytes() const noexcept {
    CacheBytes bytes = old_.bytes(), window = recent_.bytes();
    if (gone_ > 0) {
      const std::size_t row = window.used / recent_.count(), stored = window.stored / recent_.count();
      window.used -= gone_ * row;
      window.spare += gone_ * row;
      window.stored -= gone_ * stored;
    }
    return bytes += window;
  }

  void append(Backend& backend, const BackendView<float, 4>& rows) { recent_.append(backend, rows, 0, rows.extent(2)); }
  /// Codes the first `count` rows of the window. Amortised O(count).
  void code(Backend& backend, std::size_t count) {
    if (count == 0) return;
    old_.append(backend, recent_.copy(backend, gone_, count).view(), 0, count);
    gone_ += count;
    if (2 * gone_ < recent_.count()) return;
    recent_.drop_front(backend, gone_);
    gone_ = 0;
  }

 private:
  RowBuffer old_, recent_;
  std::size_t gone_ = 0;  // coded rows at the front of the window
};

/// Keys after RoPE are quantised by channel, in groups of `group` tokens: all whole blocks of R tokens of the window,
/// after the token that completes a block has attended. Values are quantised by token, in groups of `group` channels,
/// one token at a time once it is older than the last R. A token reads itself and both windows uncoded.
/// Source: Liu et al. (2024), KIVI, arXiv:2402.02750, section 4, and its public code (new_pack.py, llama_kivi.py).
/// Deviation: minimum and step are rounded to f16 before the codes are computed, so that codes match what is read back.
class KiviCache final : public LayerCache {
 public:
  explicit KiviCache(const KiviOptions& options)
      : options_(options), k_(quantised(options, true)), v_(quantised(options, false)) {}

  void attend(LayerStates& states, const Operand& out) override {
    rotate_at(states, states.first_position);
    peak_ = {};
    if (in_prefix_) return attend_together(states, out);
    for_each_token(states, out, [&](LayerStates& token, const Operand& row) {
      attend_together(token, row);
      code_old(token.backend);
    });
  }

  void begin_prefix(std::size_t) override { in_prefix_ = true; }
  void end_prefix(Backend& backend) override {
    in_prefix_ = false;
    compression(backend, [&] { code_old(backend); });
    peak_ = bytes();
  }
  CacheBytes bytes() const noexcept override {
    CacheBytes bytes = k_.bytes();
    return bytes += v_.bytes();
  }
  CacheBytes peak() const noexcept override { return peak_; }

 private:
  void attend_together(const LayerStates& states, const Operand& out) {
    attend_rows(states, {k_.old(), v_.old(), k_.window(), v_.window()}, out);
    if (states.members() > 1) return;
    k_.append(states.backend, states.k);
    v_.append(states.backend, states.v);
    if (bytes().stored > peak_.stored) peak_ = bytes();
  }

  void code_old(Backend& backend) {
    k_.code(backend, k_.recent() / options_.residual * options_.residual);
    v_.code(backend, v_.recent() - std::min(v_.recent(), options_.residual));
  }

  KiviOptions options_;
  WindowedRows k_, v_;
  CacheBytes peak_;
  bool in_prefix_ = false;
};

std::unique_ptr<LayerCache> make_kivi(Parameters& parameters, const CacheLayer& layer) {
  static constexpr std::size_t kMaxGroup = 256;  // attention reads keys in runs of this length
  KiviOptions options;
  options.bits = parameters.count("bits", "bits of a value, 2 or 4", options.bits, 2);
  if (options.bits != 2 && options.bits != 4)
    parameters.refuse("bits", "found " + std::to_string(options.bits) + ", expected 2 or 4");
  options.group = parameters.count("group", "values that share a scale and a minimum", options.group, 8);
  if (kMaxGroup % options.group != 0)
    parameters.refuse("group", "found " + std::to_string(options.group) + ", expected a power of two of at most " +
                                   std::to_string(kMaxGroup));
  options.residual = parameters.count("residual", "last tokens, which stay uncompressed", options.residual, 1);
  if (options.residual % options.group != 0)
    parameters.refuse("residual", "found " + std::to_string(options.residual) + ", expected a multiple of group, " +
                                      std::to_string(options.group));
  if (layer.shape.head_dim % options.group != 0)
    throw Error(ErrorCode::kUnsupported, "kivi",
                "found a head_dim of " + std::to_string(layer.shape.head_dim) + ", expected a multiple of group, " +
                    std::to_string(options.group));
  return std::make_unique<KiviCache>(options);
}

std::string kivi_obstacle(const ModelConfig& model) {
  if (!model.has_latents()) return {};
  return "found latent attention, whose rows are key and value at once; expected rows of their own: keys are quantised "
         "by channel, values by token";
}

}  // namespace

constinit const Method kKiviMethod{
    .name = "kivi",
    .title = "KIVI",
    .summary = "every token, keys by channel and values by token in 2 or 4 bits",
    .paper = {.authors = "Liu, Yuan, Jin, Zhong, Xu, Braverman, Chen, Hu",
              .title = "KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache",
              .link = "https://arxiv.org/abs/2402.02750",
              .year = 2024},
    .prefill = Prefill::kEither,
    .takes_kv_type = false,
    .make = make_kivi,
    .fixed_settings =
        [](std::size_t) {
          return std::vector<Json>{{{"bits", 4}}, {{"bits", 2}}};
        },
    .obstacle = kivi_obstacle,
    .priority = 8,
};

}  // namespace kvs::inline calibrate
