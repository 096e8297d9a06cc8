// SPDX-License-Identifier: Apache-2.0
#include "calibrate/faedkv/cache.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "caches/token_rows.h"
#include "caches/token_steps.h"
#include "calibrate/common/window_notes.h"
#include "calibrate/faedkv/token_spectrum.h"
#include "calibrate/method.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::size_t kFew = 8;  // maximum tokens that read the spectrum; for more, restoring rows costs less

/// Returns why a prefix of `prefix` tokens cannot be compressed, as "found …, expected …"; empty if it can.
std::string obstacle_of(const FaedkvOptions& options, std::size_t prefix) {
  const std::size_t rows = options.sinks + options.recent;
  if (prefix <= rows)
    return "found a prefix of " + std::to_string(prefix) + " tokens, expected more than its " +
           std::to_string(options.sinks) + " sinks and " + std::to_string(options.recent) + " recent ones";
  const std::size_t tokens = prefix - rows, bins = bins_of(Transform::kDft, tokens);
  if (options.chunks > bins)
    return "found " + std::to_string(options.chunks) + " chunks, expected at most the " + std::to_string(bins) +
           " bins of " + std::to_string(tokens) + " tokens";
  for (const auto* const kept : {&options.kept, &options.kept_v}) {
    if (kept->empty()) return "found no chunk that is kept, expected at least one";
    if (kept->back() >= options.chunks)
      return "found chunk " + std::to_string(kept->back()) + ", expected numbers below " +
             std::to_string(options.chunks);
  }
  if (options.before_rope && options.age && options.update == FaedkvUpdate::kLiteral)
    return "found key_space k_pre with the literal update, expected k_post: two tokens share a place, not a position";
  return {};
}

/// FAEDKV's cache. A prefix attends to all of itself. At its end the N = P − S − R tokens between its sinks and its
/// recent tokens become the kept chunks of their DFT, for keys and values separately. A few tokens read the spectrum
/// directly (SpectrumOps::spectrum_attention); for more tokens, and for keys before RoPE, the tokens are first restored
/// as rows. Source: FAEDKV, sections on compression and on the incremental transform. Deviations: the half spectrum, so
/// that states stay real; keys after RoPE by default; kCorrected. The paper's kLiteral update adds each token to the
/// one M tokens before it: S ← e^{−j2πk/M} (S + x/M) shifts every sample by one position, so the new token takes the
/// oldest one's.
/// @throws Error kUnsupported in begin_prefix() for another transform; kInternal in end_prefix() for a prefix that has
/// an obstacle.
///
/// Rows: the sinks and the tokens after the middle; with `age`, a ring of the recent tokens, the oldest at `next_`.
/// Keys before RoPE are stored unrotated and rotated for each group.
class FaedkvCache final : public LayerCache {
 public:
  explicit FaedkvCache(const FaedkvOptions& options)
      : options_(options), spectrum_(options.chunks, options.kept, options.kept_v) {}

  void attend(LayerStates& states, const Operand& out) override {
    if (options_.before_rope) turn_later(states);
    if (!ages()) return attend_together(states, out);
    for_each_token(states, out, [&](LayerStates& token, const Operand& row) { attend_together(token, row); });
  }

  void begin_prefix(std::size_t) override {
    if (!options_.half_dft())
      throw Error(ErrorCode::kUnsupported, "faedkv",
                  "found another transform or spectrum, expected transform dft and spectrum half: the others are for "
                  "the ablation alone");
  }

  void end_prefix(Backend& backend) override {
    const std::string obstacle = obstacle_of(options_, rows_.count());
    if (!obstacle.empty()) throw Error(ErrorCode::kInternal, "faedkv", obstacle);
    const std::size_t last = rows_.count() - options_.recent;
    compression(backend,
                [&] { spectrum_.assign(backend, rows_.copy(backend, options_.sinks, last - options_.sinks)); });
    TokenRows rest;
    take(backend, 0, options_.sinks, rest);
    take(backend, last, rows_.count(), rest);
    rows_ = std::move(rest);
  }

  std::optional<FullStart> full_start(std::size_t prefix) const override { return {{prefix, rows_.types()}}; }
  CacheBytes bytes() const noexcept override {
    CacheBytes bytes = rows_.bytes();
    return bytes += spectrum_.bytes();
  }
  CacheBytes peak() const noexcept override { return peak_.stored > bytes().stored ? peak_ : bytes(); }

 private:
  bool ages() const noexcept { return options_.age && spectrum_.tokens() > 0; }

  /// For tokens that all read the same spectrum.
  void attend_together(LayerStates& states, const Operand& out) {
    rotate_at(states, states.first_position);
    attend_all(states, out);
    if (states.members() > 1) return;
    if (options_.before_rope)
      states.backend.rope(states.k, states.rope, states.first_position, RopeDirection::kInverse, {});
    if (ages())
      age(states);
    else
      rows_.append(states.backend, states.k, states.v, 0, states.tokens());
  }

  void attend_all(const LayerStates& states, const Operand& out) const {
    const std::size_t group = states.q.extent(1) / states.k.extent(1);
    if (rows_.count() == 0 && spectrum_.tokens() == 0) {
      attend_rows(states, {}, out);
    } else if (options_.before_rope) {
      const TokenRows all = in_order(states.backend);
      const TokenRows::Part past = all.copy(states.backend, 0, all.count());
      states.backend.rope(past.k.view(), states.rope, 0, RopeDirection::kForward, {});
      attend_rows(states, {past.k.view(), past.v.view(), all.count()}, out);
    } else if (spectrum_.tokens() == 0) {
      attend_rows(states, rows_.held(), out);
    } else if (states.members() == 1 && states.tokens() <= kFew && group * states.tokens() <= kMaxQueryRows) {
      states.backend.spectrum_attention({.q = states.q,
                                         .k = states.k,
                                         .v = states.v,
                                         .past = rows_.held(),
                                         .scale = states.scale,
                                         .softcap = states.softcap,
                                         .sinks = states.sinks},
                                        spectrum_.view(), out);
    } else {
      attend_rows(states, in_order(states.backend).held(), out);
    }
  }

  /// Adds rows [first, last) of this cache to `rows`.
  void take(Backend& backend, std::size_t first, std::size_t last, TokenRows& rows) const {
    if (first == last) return;
    const TokenRows::Part part = rows_.copy(backend, first, last - first);
    rows.append(backend, part.k.view(), part.v.view(), 0, last - first);
  }

  /// Returns every token so far as a row, in the order of the text.
  TokenRows in_order(Backend& backend) const {
    TokenRows all;
    const std::size_t sinks = std::min(options_.sinks, rows_.count());
    take(backend, 0, sinks, all);
    if (spectrum_.tokens() > 0) {
      const TokenRows::Part middle = spectrum_.restored(backend);
      all.append(backend, middle.k.view(), middle.v.view(), 0, spectrum_.tokens());
    }
    take(backend, sinks + next_, rows_.count(), all);
    take(backend, sinks, sinks + next_, all);
    return all;
  }

  /// Moves the oldest recent token to the spectrum; the new token takes its place.
  void age(const LayerStates& states) {
    const auto full =
        options_.update == FaedkvUpdate::kLiteral ? TokenSpectrum::Full::kWrap : TokenSpectrum::Full::kRebuild;
    peak_ = bytes();  // temporarily with the new token
    peak_.stored += (states.k.size() + states.v.size()) * sizeof(std::uint16_t);
    const auto enter = [&](const BackendView<float, 4>& k, const BackendView<float, 4>& v) {
      const auto add = [&] { spectrum_.add(states.backend, k, v, 0, full); };
      if (spectrum_.tokens() == spectrum_.samples() && full == TokenSpectrum::Full::kRebuild)
        compression(states.backend, add);
      else
        add();
    };
    if (options_.recent == 0) return enter(states.k, states.v);
    const std::size_t oldest = options_.sinks + next_;
    const TokenRows::Part leaving = rows_.copy(states.backend, oldest, 1);
    enter(leaving.k.view(), leaving.v.view());
    rows_.put(states.backend, oldest, states.k, states.v, 0, 1);
    next_ = (next_ + 1) % options_.recent;
  }

  FaedkvOptions options_;
  TokenRows rows_;
  TokenSpectrum spectrum_;
  CacheBytes peak_;
  std::size_t next_ = 0;
};

std::unique_ptr<LayerCache> make_faedkv(Parameters& parameters, const CacheLayer&) {
  return std::make_unique<FaedkvCache>(faedkv_options(parameters));
}

/// Keeps the lowest chunks of the states (keys, values or both) for which `settings` name no chunks.
Json faedkv_for_share(double share, std::size_t tokens, const Json& settings) {
  // More chunks than tokens are refused when the cache is created.
  const std::size_t chunks = std::min(tokens, shared_count(settings, "chunks", FaedkvOptions{}.chunks));
  std::vector<std::size_t> lowest(static_cast<std::size_t>(std::llround(share * static_cast<double>(chunks))));
  std::iota(lowest.begin(), lowest.end(), 0);
  Json sized = Json::object();
  for (const char* const name : {"kept", "kept_v"})
    if (!settings.contains(name)) sized[name] = lowest;
  return sized;
}

}  // namespace

FaedkvOptions faedkv_options(Parameters& parameters) {
  static constexpr std::string_view kKeySpaces[] = {"k_post", "k_pre"}, kUpdates[] = {"corrected", "literal"},
                                    kTransforms[] = {"dft", "dct"}, kSpectra[] = {"half", "full"};
  FaedkvOptions options;
  options.sinks = parameters.count("sinks", "first tokens that stay in rows", options.sinks, 0);
  options.recent = parameters.count("recent", "last tokens of the prefix that stay in rows", options.recent, 0);
  options.chunks = parameters.count("chunks", "number of chunks of the half spectrum", options.chunks, 1);
  options.kept = parameters.indices("kept", "chunks of the keys that stay", {0}, options.chunks);
  options.kept_v = parameters.indices("kept_v", "chunks of the values that stay (not in the paper)", options.kept,
                                      options.chunks, "kept");
  std::ranges::sort(options.kept);
  std::ranges::sort(options.kept_v);
  options.before_rope =
      parameters.choice("key_space", "k_post: transform keys after RoPE; k_pre: before RoPE", kKeySpaces) == 1;
  options.age = parameters.on_off("age", "on: tokens that are no longer recent enter the spectrum", options.age);
  options.update = static_cast<FaedkvUpdate>(
      parameters.choice("update", "how a token enters the spectrum; literal: as the paper prints it", kUpdates));
  if (parameters.choice("transform", "dct: only for the ablation", kTransforms) == 1)
    options.transform = Transform::kDct;
  options.full_spectrum = parameters.choice("spectrum", "full: only for the ablation", kSpectra) == 1;
  // N tokens have ⌊N/2⌋ + 1 bins; each chunk needs one.
  const std::size_t tokens = options.half_dft() ? std::max<std::size_t>(1, 2 * (options.chunks - 1)) : 1;
  const std::size_t prefix = parameters.count("prefix", "first tokens, which are compressed once, at their end",
                                              Parameters::kRequired, 1, options.sinks + options.recent + tokens - 1);
  const std::string obstacle = obstacle_of(options, prefix);
  if (options.half_dft() && !obstacle.empty()) {
    const char* const other = options.kept_v.empty() ? "kept_v" : "update";
    parameters.refuse(options.kept.empty() ? "kept" : other, obstacle);
  }
  return options;
}

constinit const Method kFaedkvMethod{
    .name = "faedkv",
    .title = "FAEDKV",
    .summary = "some chunks of the DFT of a prefix, which attention reads without an inverse transform",
    .paper = {.authors = "Li, Fu, Sheng, Long, Yu, Li",
              .title = "FAEDKV: Infinite-Window Fourier Transform for Unbiased KV Cache Compression",
              .link = "https://arxiv.org/abs/2507.20030",
              .year = 2025},
    .prefill = Prefill::kWhole,
    .takes_kv_type = false,
    .make = make_faedkv,
    .settings_for_share = faedkv_for_share,
    .notes = window_notes,
    .priority = 9,
};

}  // namespace kvs::inline calibrate
