// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "draw/chart.h"
#include "results/states.h"

namespace kvs::inline results {

/// Families of compression methods, by the redundancy that they use.
enum class MethodFamily { kMean, kTokens, kChannels, kTransform, kLowRank, kJoint, kPlain };
constexpr std::array<std::string_view, 7> json_names(MethodFamily) {
  return {"mean", "tokens", "channels", "transform", "low_rank", "joint", "plain"};
}
enum class FamilyVerdict { kPays, kHardlyPays, kCannotPay };
constexpr std::array<std::string_view, 3> json_names(FamilyVerdict) {
  return {"can pay", "can hardly pay", "cannot pay"};
}

/// The bits per value that a family can save for each state. For low_rank: the share of components that get no bits.
/// For plain: the total savings of all other families, which plain quantisation does not use.
struct FamilyFinding {
  MethodFamily family = MethodFamily::kMean;
  StateMembers<double> saves = {};  // k_pre and v; for joint, both members hold the savings of the joint transform
  FamilyVerdict verdict = FamilyVerdict::kCannotPay;  // from the larger of the two savings; plain cannot pay if it
                                                      // leaves large savings unused
  std::string words = {};                             // family_words()

  static void fields(auto& of, auto&& field) {
    field("family", of.family)("saves", of.saves)("verdict", of.verdict)("words", of.words);
  }
};

/// Coding gains of a model's layers, in bits per value (docs/spectra.md).
struct CodingGainResult {
  /// One list for each step, indexed by layer or by head.
  struct Steps {
    std::vector<double> mean = {}, channels = {}, head = {};
    std::optional<std::vector<std::vector<double>>> tokens = {}, tokens_by_channel = {};  // [..][block length]
    std::optional<std::vector<std::optional<double>>> layer = {};                         // only for lists by layer
    std::optional<std::vector<double>> idle_share = {};

    static void fields(auto& of, auto&& field) {
      field("mean", of.mean)("channels", of.channels)("head", of.head);
      field.absent_or("tokens", of.tokens);
      field.absent_or("tokens_by_channel", of.tokens_by_channel);
      field.absent_or("layer", of.layer);
      field.absent_or("idle_share", of.idle_share);
    }
  };
  struct LayersAndHeads {
    Steps layers = {};
    std::vector<Steps> heads = {};  // [layer]; lists are indexed by head
    static void fields(auto& of, auto&& field) { field("layers", of.layers)("heads", of.heads); }
  };
  struct State {
    LayersAndHeads all = {};
    std::optional<LayersAndHeads> weighted = {};  // with errors weighted by their cost in use
    static void fields(auto& of, auto&& field) {
      field.inlined(of.all);
      field.absent_or("weighted", of.weighted);
    }
  };
  struct States {
    StateMembers<State> states = {};
    std::vector<std::optional<double>> joint = {};  // [layer]: gain of one KLT over keys and values
    static void fields(auto& of, auto&& field) {
      field.inlined(of.states);
      field("joint", of.joint);
    }
  };
  /// The savings that would be measured on white noise.
  struct Optimism {
    double channels = 0, head = 0, layer = 0, joint = 0;
    std::vector<double> tokens = {};  // [block length]
    static void fields(auto& of, auto&& field) {
      field("channels", of.channels)("head", of.head)("layer", of.layer)("joint", of.joint)("tokens", of.tokens);
    }
  };
  struct Measured {
    std::vector<std::size_t> block_tokens = {};
    States mean_removed = {}, mean_kept = {};
    Optimism optimism = {};
    std::vector<FamilyFinding> families = {};
    static void fields(auto& of, auto&& field) {
      field("block_tokens", of.block_tokens)("mean_removed", of.mean_removed)("mean_kept", of.mean_kept)(
          "optimism", of.optimism)("families", of.families);
    }
  };
  std::size_t tokens = 0, first_token = 0, kv_heads = 0, head_dim = 0;
  double finest_bits = 0;
  std::vector<std::string> left_out = {};
  std::optional<Measured> measured = {};  // nullopt if there are too few tokens

  static void fields(auto& of, auto&& field) {
    field("tokens", of.tokens)("first_token", of.first_token)("kv_heads", of.kv_heads)("head_dim", of.head_dim)(
        "finest_bits", of.finest_bits)("left_out", of.left_out);
    field.inlined("mean_removed", of.measured);
  }
};

/// The steps of a coder, in order. kTokens uses the longest block.
enum class GainStep { kMean, kChannels, kHead, kLayer, kJoint, kTokens };
inline constexpr std::size_t kGainSteps = 6;
/// Returns the step in words: "mean subtracted", "bits by channel", ….
std::string_view words_of(GainStep step) noexcept;
/// Returns the gain of each layer; an empty list if the step was not measured.
/// @param joint  gains of the joint KLT, or null
std::vector<double> gains_of(const CodingGainResult::Steps& layers, GainStep step,
                             const std::vector<std::optional<double>>* joint);

/// Describes a finding in one sentence.
/// @param block  tokens of the longest block
/// @param rate   the rate of low_rank, bits per value
std::string family_words(const FamilyFinding& finding, std::size_t block, double rate);
/// Returns a table of the means over layers, followed by one sentence for each family of methods.
std::string to_text(const CodingGainResult& result);
/// Draws the savings of each step by layer with the means removed, as stacked bars: one panel for k_pre and one for v.
/// Both panels show the joint KLT. `result.measured` must be set.
draw::Chart coding_gain_chart(const std::string& heading, const std::vector<std::size_t>& layers,
                              const CodingGainResult& result);

}  // namespace kvs::inline results
