// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace kvs::inline calibrate {

/// One way in which a layer may keep its tokens.
struct LayerCandidate {
  std::size_t size = 0;            // in any unit, the same for all layers
  std::vector<std::size_t> steps;  // candidates of the layer that are one step away
};

using LayerChoice = std::vector<std::size_t>;  // [layer] index of a candidate

/// Returns the loss of each document for a choice of all layers.
using JointLoss = std::function<std::vector<double>(const LayerChoice&)>;

struct LayerBudget {
  std::vector<std::vector<LayerCandidate>> layers;  // [layer] its candidates
  std::size_t size = 0;                             // maximum, of all layers together
  std::size_t rounds = 0;                           // maximum number of rounds of marginal losses
  std::size_t exchanges = 0;                        // maximum number of exchanges tried after the rounds
};

struct LayerAllocation {
  LayerChoice choice;
  double loss = 0;           // mean over documents
  std::size_t measured = 0;  // number of joint losses measured
};

/// Distributes one budget over layers by measured loss, which need not be a sum over layers: every step of every layer
/// is measured with all other layers unchanged.
///  1. A round measures all steps and combines them to trades. The most promising step is paid for by the steps of
///     other layers that cost least for their size. Each layer is in one trade. All trades at once, or the better half
///     of them, or half of that half, are kept if the joint loss falls. The next round measures again; a round that
///     keeps nothing is the last.
///  2. Then single steps and exchanges (one layer up, another down) are tried one at a time, the most promising first.
///     Estimates add marginal losses, and interactions may change the result in either direction. A change that lowers
///     the joint loss is kept.
/// Cost: a round takes Σ layers' steps + log₂ layers joint losses, layer by layer in ascending order. Source: this
/// project.
/// @param start  the uniform split
/// @throws Error kUsage if the start is above the budget, with the size of the smallest candidates
LayerAllocation allocate_layers(const LayerBudget& budget, LayerChoice start, const JointLoss& loss);

}  // namespace kvs::inline calibrate
