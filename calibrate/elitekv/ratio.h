#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "calibrate/elitekv/elite_allocation.h"
#include "calibrate/elitekv/factors.h"
#include "calibrate/elitekv/search.h"
#include "eval/perplexity.h"
#include "model/decoder.h"

namespace kvs {

/// Factorises every layer as `config` says for each of `candidates`, without fitted outputs, runs `documents` through
/// the caches, and sets r, rank and J-LRD or S-LRD to those of least perplexity, the first on ties. The trials go into
/// the config, and the GQA model of the first candidate's bytes, KV heads mean-pooled, if a number of heads has them. A
/// trial that meets NaN or infinity is recorded and not chosen.
/// Memory holds the factors and products of all layers of one candidate.
/// @param search     which picks chunks;  @param input  its sums
/// @param documents  which `search` has not seen
/// @param done       called before each candidate with the number of those tried
/// @throws Error kData if every trial meets NaN or infinity, or the full cache does
void choose_allocation(const FactorInput& input, Decoder& decoder, const EliteSearch& search,
                       std::span<const EliteCandidate> candidates, std::span<const std::vector<std::int32_t>> documents,
                       EliteConfig& config, const std::function<void(std::size_t)>& done);

/// Gives a trial the losses that `run` finds, or an infinite NLL where `run` meets NaN or infinity.
void measure_trial(EliteTrial& trial, const std::function<PerplexitySum()>& run);

}  // namespace kvs
