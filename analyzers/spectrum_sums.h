// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "analyzers/moments.h"
#include "analyzers/spectrum.h"

namespace kvs::inline analyzers {

/// Sums of a spectrum and, where gains are wanted, the moments that are taken on the way to it.
struct SpectrumSums {
  SpectrumAccumulator spectrum;
  std::unique_ptr<MomentSource> moments;

  /// Adds one document of the source that `moments` has, if they are taken, else of `source`.
  void add_document(StateSource& source, std::size_t document) {
    spectrum.add_document(moments != nullptr ? *moments : source, document);
  }
  std::vector<std::span<const double>> all() const {
    std::vector<std::span<const double>> sums = spectrum.sums();
    if (moments != nullptr) std::ranges::copy(moments->sums(), std::back_inserter(sums));
    return sums;
  }
  std::vector<std::vector<double>> take_all() {
    std::vector<std::vector<double>> sums = spectrum.take_sums();
    if (moments != nullptr) std::ranges::move(moments->take_sums(), std::back_inserter(sums));
    return sums;
  }
  void restore(std::span<const std::vector<double>> sums) {
    const std::size_t own = std::min(spectrum.sums().size(), sums.size());
    spectrum.restore(sums.first(own));
    if (moments != nullptr) moments->restore(sums.subspan(own));
  }
  void add(std::span<const std::vector<double>> sums) {
    const std::size_t own = spectrum.sums().size();
    spectrum.add(sums.first(own));
    if (moments != nullptr) moments->add(sums.subspan(own));
  }
};

}  // namespace kvs::inline analyzers
