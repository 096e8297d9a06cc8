#include "analyzers/figures/perturbation.h"

#include <algorithm>

#include "analyzers/figures/bands.h"
#include "embedded/figure_perturbation.h"

namespace kvs {
namespace {

/// The lower end of an axis that ends at 1: wide intervals of few documents are cut off.
double axis_low(const SimilarityCurves& curves) {
  constexpr double kMargin = 0.35, kLeastRange = 1e-3;
  double low = 1 - kLeastRange;
  for (const StateKind state : kPerturbedStates)
    for (const SimilarityCurve& curve : curves[state]) low = std::min(low, *std::ranges::min_element(curve.mean));
  return low - kMargin * (1 - low);
}

void add_curve(FigureData& data, const SimilarityCurve& curve, std::span<const std::size_t> layers, double low) {
  for (std::size_t n = 0; n < layers.size(); ++n) {
    const auto [least, most] = curve.interval[n].value_or(std::pair{curve.mean[n], curve.mean[n]});
    data.row({static_cast<double>(layers[n]), curve.mean[n], std::max(least, low), std::min(most, 1.0)});
  }
  data.next_block();
}

}  // namespace

FigureImages render_perturbation(const std::string& heading, std::span<const std::size_t> layers,
                                 std::span<const PerturbedDocument> documents) {
  std::vector<std::pair<std::string, SimilarityCurves>> rows;
  for (const bool same_count : {true, false})
    if (auto curves = similarity_curves(documents, same_count))
      rows.emplace_back(same_count ? "tokens in place" : "tokens moved", std::move(*curves));
  const auto columns = static_cast<double>(kPerturbedStates.size()), lines = static_cast<double>(rows.size());
  Figure figure(embedded::figure_perturbation, 80 + 340 * columns, 124 + 190 * lines + 34 * (lines - 1));
  FigureData data;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const double low = axis_low(rows[row].second);
    for (const StateKind state : kPerturbedStates)
      for (const SimilarityCurve& curve : rows[row].second[state]) add_curve(data, curve, layers, low);
    const std::string number = std::to_string(row + 1);
    figure.set("row_title_" + number, rows[row].first).set("row_low_" + number, low);
  }
  for (std::size_t n = 0; n < kPerturbedStates.size(); ++n)
    figure.set("column_title_" + std::to_string(n + 1), title_of(kPerturbedStates[n]));
  return figure.data("similarity", data)
      .set("rows", lines)
      .set("columns", columns)
      .set("first_layer", static_cast<double>(layers.front()))
      .set("last_layer", static_cast<double>(layers.back()))
      .set("heading", heading)
      .render();
}

}  // namespace kvs
