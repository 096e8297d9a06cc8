#pragma once

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "caches/kv_types.h"
#include "caches/parameters.h"
#include "calibrate/elitekv/elite_allocation.h"
#include "calibrate/elitekv/jlrd.h"
#include "calibrate/elitekv/ropelite.h"
#include "eval/paired_difference.h"
#include "io/json.h"

namespace kvs {

/// What the error of the factors is weighed by: nothing (the paper's J-LRD), the inputs seen in the text, or these and
/// what an error costs at the attention's output.
enum class Whitening { kOff, kInputs, kBoth };

/// All singular values of what was factorised, descending: of the joint matrix, or of the keys' and the values'.
struct EliteSingularValues {
  std::vector<double> joint, k, v;
};

/// A pair (r, d_ckv) that was tried on documents held out.
struct EliteTrial {
  std::size_t r = 0, d_ckv = 0;
  bool joint = true;                // J-LRD; false: S-LRD
  std::size_t parameters = 0;       // of all layers, in the place of W_k and W_v: elite rows and factors
  double nll = 0, nll_full = 0;     // means of the scored tokens, nats; nll: infinite where a pass met NaN or infinity
  std::vector<double> losses = {};  // [document held out] mean NLL; empty of a config that was read
  double nll_error = 0;             // standard error of nll, over documents or the tokens of one

  bool is_finite() const { return std::isfinite(nll); }
};

/// The GQA model of the trials' bytes on the same documents.
struct GqaTrial {
  std::size_t heads = 0;  // KV heads, each the mean of as many
  double nll = 0;         // as EliteTrial has it
  double nll_error = 0;

  bool is_finite() const { return std::isfinite(nll); }
};

/// How sizes by layer came out against the same one for all layers, on documents that neither was chosen by.
struct EliteByLayer {
  bool layers_won = false;      // else all layers have the same size
  PairedDifference difference;  // of the layers' own sizes from the same one for all
  std::size_t measured = 0;     // joint losses that it took
};

/// What an elitekv config says beside its model and its provenance. Lists are by position in `layers`.
struct EliteConfig {
  std::vector<std::size_t> layers;             // ascending; the others keep everything
  std::size_t r = 0;                           // chunks of a head that stay rotated, the most of a layer
  std::vector<EliteAllocation> by_layer;       // [layer] r and d_ckv (0 without factors); empty: all as r and rank say
  std::vector<std::vector<ElitePicks>> picks;  // [layer][head], r of each

  int norm = 2;
  Granularity granularity = Granularity::kKvHead;
  bool by_attention = false;  // pairs of query and key counted by the attention between them; false: all alike
  std::string search;         // how the chunks were chosen: search, disjoint or the name of a baseline

  bool joint = true;  // J-LRD; false: S-LRD
  Whitening whitening = Whitening::kOff;
  SingularSplit split = SingularSplit::kUp;
  bool fitted_outputs = false;  // W_o makes up for what the cache loses: tensors of elite_output()
  bool fitted_queries = false;  // W_q makes up for what is not rotated: tensors of elite_queries()
  // d_ckv, the most of a layer; of S-LRD the budget d_ck + d_cv; nothing without factors
  std::optional<std::size_t> rank;
  std::vector<std::pair<std::size_t, std::size_t>> ranks;  // S-LRD: [layer] d_ck and d_cv
  std::vector<EliteTrial> trials;                          // what r and rank were chosen from; empty: they were given
  std::optional<GqaTrial> gqa;                             // beside them; nothing if no number of heads has their bytes
  std::optional<EliteByLayer> allocation;                  // if layers were to have sizes of their own
  std::vector<EliteSingularValues> singular_values;        // [layer]; empty without factors

  /// Of the layer at position `n`; d_ckv is 0 without factors.
  EliteAllocation size_of(std::size_t n) const {
    return by_layer.empty() ? EliteAllocation{r, rank.value_or(0)} : by_layer[n];
  }
};

/// The tensors of a layer that stand for W_q [query_heads · head_dim, d_model] and, where it has one, its bias.
struct EliteQueries {
  std::string weight, bias;
};
EliteQueries elite_queries(std::size_t layer);

/// The tensor of a layer that multiplies the attention's output [query_heads · head_dim, the same]: W_o becomes W_o
/// times it.
std::string elite_output(std::size_t layer);

/// One pair of factors of a layer, as tensors of the file beside the config: up · down.
struct EliteFactor {
  std::string up, down;  // names
  std::size_t rows = 0;  // of up
  std::size_t rank = 0;  // columns of up, rows of down
};

/// The factors of the layer at position `n`: one pair, or that of the keys and that of the values. Rows: for each KV
/// head its channels that are not elite, then all of the values.
std::vector<EliteFactor> elite_factors(const EliteConfig& config, std::size_t n, std::size_t kv_heads,
                                       std::size_t head_dim);

/// The trial of least NLL, the first on ties. @throws Error kData if all trials met NaN or infinity
const EliteTrial& best_trial(const EliteConfig& config);
/// Why r and rank are what they are: the chosen trial, and which of the others the documents held out tell from it.
std::string trials_verdict(const EliteConfig& config);

/// The members `parameters` and `calibration` of the config.
Json elite_parameters(const EliteConfig& config);
Json elite_calibration(const EliteConfig& config);

/// Reads them but for what was tried, checked by check_config before.
/// @param where  the file, for messages;  @throws Error kInput
EliteConfig read_elite_config(const Json& config, const std::string& where);
/// Reads `calibration.trials`; a config without has none. @throws Error kInput
std::vector<EliteTrial> read_elite_trials(const Json& config, const std::string& where);

/// What of a config's parameters says how rows are held: the layers and their storage type.
Json elite_row_parameters(const Json& config);
/// How each of the model's layers holds elite rows and the latent, by such parameters.
/// @throws Error as read_row_types, also for a parameter of another name
std::vector<KvTypes> read_elite_stores(Parameters& parameters);

}  // namespace kvs
