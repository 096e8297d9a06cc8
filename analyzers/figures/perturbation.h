#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "analyzers/perturbation_report.h"
#include "draw/figure.h"

namespace kvs {

/// Similarity of both halves of the bins by layer with 95 % intervals, after FreqKV's figure 2: one column a state, a
/// row of the documents whose tokens stay where they were and one of the others.
/// @param layers  the model's, by position
FigureImages render_perturbation(const std::string& heading, std::span<const std::size_t> layers,
                                 std::span<const PerturbedDocument> documents);

}  // namespace kvs
