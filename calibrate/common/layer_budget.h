#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace kvs {

/// One of the ways in which a layer may keep its tokens.
struct LayerCandidate {
  std::size_t size = 0;            // in any unit, the same for all layers
  std::vector<std::size_t> steps;  // the layer's candidates that are one step away
};

using LayerChoice = std::vector<std::size_t>;  // [layer] a candidate

/// The loss of each document with all layers as chosen.
using JointLoss = std::function<std::vector<double>(const LayerChoice&)>;

struct LayerBudget {
  std::vector<std::vector<LayerCandidate>> layers;  // [layer] its candidates
  std::size_t size = 0;                             // of all layers together, at most
  std::size_t rounds = 0;                           // of marginal losses, at most
  std::size_t exchanges = 0;                        // that are tried after them, at most
};

struct LayerAllocation {
  LayerChoice choice;
  double loss = 0;           // mean over documents
  std::size_t measured = 0;  // joint losses that it took
};

/// Spends one budget on layers by measured loss, which need not be a sum over layers: every step of every layer is
/// measured with all others as they stand.
///  1. A round measures all steps and makes trades of them: the step that promises most, paid for by those of other
///     layers that cost least for their size; each layer is in one trade. All trades at once, or the better half of
///     them, or the half of that, are kept if the joint loss falls. The next round measures anew; a round that keeps
///     nothing is the last.
///  2. Then single steps and exchanges (one layer up, another down) are tried by themselves, the most promising first;
///     promises add marginal losses, which interactions may belie either way. What lets the joint loss fall is kept.
/// Cost: a round takes Σ layers' steps + log₂ layers joint losses, layer by layer in ascending order. Source: ours.
/// @param start  the uniform split
/// @throws Error kUsage if the start is above the budget, saying what the smallest candidates need
LayerAllocation allocate_layers(const LayerBudget& budget, LayerChoice start, const JointLoss& loss);

}  // namespace kvs
