#pragma once

#include <string_view>
#include <vector>

#include "analyzers/model_gain.h"
#include "draw/figure.h"

namespace kvs {

/// Bars by layer of what each step saves once the means are gone, stacked: k_pre above, v below. The joint KLT stands
/// in both. Needs k_pre or v, and layers.
/// @param layers  the model's, by position
FigureImages render_coding_gain(const ModelGains& gains, const std::vector<std::size_t>& layers,
                                std::string_view model_name);

}  // namespace kvs
