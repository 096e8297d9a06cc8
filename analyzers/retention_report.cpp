#include "analyzers/retention_report.h"

#include <cmath>
#include <iomanip>
#include <sstream>

#include "core/exponential.h"
#include "draw/axis.h"
#include "eval/paired_difference.h"
#include "io/finite.h"

namespace kvs {
namespace {

std::string_view name_of(KeptBand band) noexcept { return kKeptBandNames[static_cast<std::size_t>(band)]; }
std::string_view name_of(CutStates states) noexcept { return kCutStateNames[static_cast<std::size_t>(states)]; }

/// Of perplexity against the unchanged model's, over documents.
PairedDifference difference_of(const PerplexitySum& point, const PerplexitySum& full) {
  const double scored = static_cast<double>(full.scored) / static_cast<double>(full.per_document.size());
  std::vector<double> differences;
  for (std::size_t n = 0; n < full.per_document.size(); ++n)
    differences.push_back((point.per_document[n] - full.per_document[n]) / scored);
  return paired_difference(differences);
}

Json curve_json(const RetentionCurve& curve, const PerplexitySum& full) {
  Json ppl = Json::array(), nll = Json::array(), ratio = Json::array(), intervals = Json::array();
  for (const PerplexitySum& point : curve.points) {
    ppl.push_back(finite_or_null(point.perplexity()));
    nll.push_back(point.mean());
    ratio.push_back(exponential_or_null(point.mean() - full.mean()));
    const auto interval = difference_of(point, full).interval;
    intervals.push_back(interval ? Json{1 + interval->first, 1 + interval->second} : Json());
  }
  return {{"band", name_of(curve.band)},
          {"states", name_of(curve.states)},
          {"ppl", ppl},
          {"nll_mean", nll},
          {"ratio", ratio},
          {"interval", intervals}};
}

}  // namespace

Json retention_json(const RetentionPlan& plan, const Retention& retention) {
  const AblationSetup& setup = plan.setup;
  Json kept = Json::array(), curves = Json::array();
  for (const double share : plan.shares) kept.push_back(plan.kept(share));
  for (const RetentionCurve& curve : retention.curves) curves.push_back(curve_json(curve, retention.full));
  Json json{{"protocol", setup.continuation ? "continuation" : "in-place"},
            {"transform", setup.transform == Transform::kDct ? "dct" : "dft"},
            {"key_space", setup.before_rope ? "k_pre" : "k_post"},
            {"sinks", setup.sinks},
            {"recent", setup.recent},
            {"layers", plan.layers},
            {"unit", plan.chunks ? "chunk" : "bin"},
            {"units", plan.units()},
            {"shares", plan.shares},
            {"kept", kept},
            {"scored_per_document", setup.scored()},
            {"ppl_full", finite_or_null(retention.full.perplexity())},
            {"nll_full", retention.full.mean()},
            {"curves", curves}};
  if (setup.continuation) json["prefix"] = setup.prefix;
  return json;
}

std::vector<KeptBandCurve> kept_band_curves(const RetentionPlan& plan, const Retention& retention) {
  std::vector<KeptBandCurve> curves;
  for (const RetentionCurve& curve : retention.curves) {
    auto& [states, band, values] = curves.emplace_back();
    states = name_of(curve.states);
    band = curve.band == KeptBand::kBest ? "largest Δ" : curve.band == KeptBand::kLow ? "lowest" : "highest";
    for (std::size_t n = 0; n < plan.shares.size(); ++n) {
      const PerplexitySum& point = curve.points[n];
      KeptBandCurve::Value& value = values.emplace_back(
          KeptBandCurve::Value{plan.shares[n], draw::drawn_exponential(point.mean() - retention.full.mean())});
      if (const auto interval = difference_of(point, retention.full).interval)
        value.interval = {1 + interval->first, 1 + interval->second};
    }
  }
  return curves;
}

std::string retention_summary(const RetentionPlan& plan, const Retention& retention) {
  std::ostringstream text;
  text << std::setprecision(4) << "retain: perplexity "
       << exponential_with_error(retention.full.mean(), retention.full.error()) << " with whole spectra ("
       << plan.setup.subject() << "); relative to it with a share of " << plan.units()
       << (plan.chunks ? " chunks" : " bins") << " kept\n  " << std::left << std::setw(12) << "kept" << std::right;
  for (const double share : plan.shares) text << std::setw(13) << std::to_string(std::lround(100 * share)) + " %";
  text << '\n';
  for (const RetentionCurve& curve : retention.curves) {
    text << "  " << std::left << std::setw(12)
         << std::string(name_of(curve.band)) + " " + std::string(name_of(curve.states)) << std::right;
    for (const PerplexitySum& point : curve.points)
      text << std::setw(13) << exponential_text(point.mean() - retention.full.mean());
    text << '\n';
  }
  return text.str();
}

}  // namespace kvs
