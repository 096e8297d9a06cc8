// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "eval/evaluation.h"
#include "model/config.h"
#include "results/evaluation.h"

namespace kvs::inline eval {

/// Bytes of the full cache after `tokens` tokens, 2 bytes a value.
double full_cache_bytes(const ModelConfig& model, std::size_t tokens);

/// The measures of an evaluation of documents of `window` tokens, without times.
CacheQuality cache_quality(const Evaluation& evaluation, const ModelConfig& model, std::size_t window);
/// The distribution of the divergence from the full cache over tokens.
DivergenceTail divergence_tail(const FullReference& full);
/// The number of tokens in each quarter of a decade of their divergence; without those that count as 0.
std::vector<DivergenceCurves::Bin> divergence_histogram(const QuantileSketch& divergences);
/// Returns the 95 % interval of a share of `count` cases (Wilson 1927), as if they were independent.
std::pair<double, double> wilson_interval(double share, double count);
/// Adds the times that the evaluation took.
void add_times(const Evaluation& evaluation, EvaluationResult& result);

}  // namespace kvs::inline eval
