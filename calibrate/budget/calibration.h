#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/document_loss.h"
#include "eval/paired_difference.h"
#include "io/journal.h"
#include "io/json.h"
#include "model/decoder.h"
#include "ranks/ranks.h"
#include "states/state_source.h"

namespace kvs {

/// What a calibration is asked for.
struct BudgetPlan {
  std::size_t bytes = 0;        // stored, of all layers: at most what a document holds at any time (CacheSizes)
  Json fixed = Json::object();  // settings that are given: prefix, store, …; the grid gives the others
  std::size_t rounds = 0;       // of marginal losses by layer (allocate_layers); 0: all layers have the same setting
};

/// Documents of one length.
struct BudgetText {
  std::span<const std::vector<std::int32_t>> measured;  // settings are chosen on
  std::span<const std::vector<std::int32_t>> held;      // nothing was chosen by: they decide
  /// [measured document] the full cache's, for calibrations that share them; empty: each makes its own.
  std::span<const std::shared_ptr<FullPass>> full = {};
  /// Of the measured documents, for layers that trade; nullptr: what spectra propose is not tried.
  StateSource* states = nullptr;
};

/// Settings of a method, sizes included, and what they did on the documents held out.
struct BudgetContender {
  std::string name;              // "layers", "uniform" or "standard"
  Json settings;                 // for --set, or a config's parameters
  std::size_t bytes = 0;         // as BudgetPlan::bytes
  std::vector<double> nll = {};  // [held document] mean
  double nll_error = 0;          // standard error of their mean, over documents or the tokens of one
};

/// A setting of the grid, as far as it was screened.
struct BudgetTrial {
  Json settings;
  std::size_t place = 0;  // in the grid
  std::size_t documents = 0;
  double divergence = 0;  // mean over those documents
};

struct BudgetCalibration {
  /// The first is chosen: that of least NLL, or a plainer one that the documents held out do not tell from it; then by
  /// NLL. "standard" is plainer than "uniform", and that than "layers".
  std::vector<BudgetContender> contenders;
  /// Settings of the bytes of "uniform" that diverge less on the measured documents, are not told from it there and ask
  /// more of what runs them; null: there are none. The difference is of "uniform" from them, in nats a token.
  Json passed_over;
  std::vector<double> passed_over_by;  // [measured document]
  std::string least;                   // the contender of least NLL; empty: nothing was held out
  std::vector<BudgetTrial> trials;     // best first: those of more documents, then by divergence
  std::vector<double> full_nll;        // [held document] of the full cache
  double full_nll_error = 0;           // as BudgetContender::nll_error
  std::size_t measured = 0;            // losses of single documents that it took

  const Json& settings() const { return contenders.front().settings; }
  /// Of the winner from the contender of this name; nothing if that is not there or the winner itself.
  std::optional<PairedDifference> difference_from(std::string_view name) const;
};

/// Calibrates a method to a byte budget:
///  1. Every setting of its grid gets the greatest size that the budget allows. They are screened by the divergence
///     from the full cache's predictions, by successive halving over the measured documents
///     (calibrate/budget/halving.h).
///  2. With rounds, layers trade sizes under the one budget, and may take what their spectra propose (allocate_layers,
///     BudgetGrid::proposal).
///  3. Documents held out decide between the layers' own settings, one for all (`uniform`) and the paper's at the same
///     bytes (`standard`), by their NLL: none is chosen over a plainer one that they do not tell from it.
/// @param done     called after each measurement with their number so far and at most
/// @param journal  keeps the losses that were measured; those that it holds are not measured again
/// @param ranks    share the losses, and all have the result; nullptr: this process measures all
/// @throws Error kUsage if no setting reaches the budget, naming the least that one needs
BudgetCalibration calibrate_to_budget(Decoder& decoder, std::string_view method, const BudgetPlan& plan,
                                      const BudgetText& text,
                                      const std::function<void(std::size_t, std::size_t)>& done = {},
                                      Journal* journal = nullptr, Ranks* ranks = nullptr);

/// Losses of single documents that it measures at most.
std::size_t max_losses(const ModelConfig& model, std::string_view method, const BudgetPlan& plan,
                       const BudgetText& text);

}  // namespace kvs
