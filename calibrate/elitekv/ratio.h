// SPDX-License-Identifier: Apache-2.0
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

namespace kvs::inline calibrate {

/// For each of `candidates`, factorises every layer according to `config`, without fitted outputs, and runs `documents`
/// through the caches. Sets r, rank and J-LRD or S-LRD to the candidate with the lowest perplexity, the first on ties.
/// Adds to the config the trials and, if a number of heads has the first candidate's bytes, the GQA model with that
/// number of mean-pooled KV heads. A trial that meets NaN or infinity is recorded and not chosen.
/// Memory: the factors and products of all layers of one candidate.
/// @param search     picks the chunks;  @param input  its sums
/// @param documents  not used by `search`
/// @param done       called before each candidate with the number of candidates tried
/// @throws Error kData if every trial meets NaN or infinity, or the full cache does
void choose_allocation(const FactorInput& input, Decoder& decoder, const EliteSearch& search,
                       std::span<const EliteCandidate> candidates, std::span<const std::vector<std::int32_t>> documents,
                       EliteConfig& config, const std::function<void(std::size_t)>& done);

/// Sets a trial's losses from `run`, or an infinite NLL if `run` meets NaN or infinity.
void measure_trial(EliteTrial& trial, const std::function<PerplexitySum()>& run);

}  // namespace kvs::inline calibrate
