// SPDX-License-Identifier: Apache-2.0
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

namespace kvs::inline calibrate {

/// The weights of the factors' errors: none (the paper's J-LRD), the inputs in the text, or the inputs and the cost of
/// an error at the attention's output.
enum class Whitening { kOff, kInputs, kBoth };

/// All singular values of the factorised matrices, descending: of the joint matrix, or of the keys' and the values'
/// matrix.
struct EliteSingularValues {
  std::vector<double> joint, k, v;
};

/// A pair (r, d_ckv) that was tried on held-out documents.
struct EliteTrial {
  std::size_t r = 0, d_ckv = 0;
  bool joint = true;                // J-LRD; false: S-LRD
  std::size_t parameters = 0;       // in all layers, replacing W_k and W_v: elite rows and factors
  double nll = 0, nll_full = 0;     // means of the scored tokens, nats; nll: infinite if a pass met NaN or infinity
  std::vector<double> losses = {};  // [held-out document] mean NLL; empty for a config that was read
  double nll_error = 0;             // standard error of nll, over documents or the tokens of one

  bool is_finite() const { return std::isfinite(nll); }
};

/// The GQA model with the trials' bytes on the same documents.
struct GqaTrial {
  std::size_t heads = 0;  // KV heads, each the mean of equally many
  double nll = 0;         // like EliteTrial::nll
  double nll_error = 0;

  bool is_finite() const { return std::isfinite(nll); }
};

/// Comparison of sizes by layer with one size for all layers, on documents that were used for neither choice.
struct EliteByLayer {
  bool layers_won = false;      // false: all layers have the same size
  PairedDifference difference;  // of the layers' own sizes from one size for all layers
  std::size_t measured = 0;     // number of joint losses measured
};

/// The content of an elitekv config, without its model and its provenance. Lists are by index in `layers`.
struct EliteConfig {
  std::vector<std::size_t> layers;        // ascending; other layers keep everything
  std::size_t r = 0;                      // chunks of a head that stay rotated, maximum over layers
  std::vector<EliteAllocation> by_layer;  // [layer] r and d_ckv (0 without factors); empty: r and rank for all layers
  std::vector<std::vector<ElitePicks>> picks;  // [layer][head], r chunks each

  int norm = 2;
  Granularity granularity = Granularity::kKvHead;
  bool by_attention = false;  // pairs of query and key are weighted by attention; false: all equally
  std::string search;         // how chunks were chosen: search, disjoint or the name of a baseline

  bool joint = true;  // J-LRD; false: S-LRD
  Whitening whitening = Whitening::kOff;
  SingularSplit split = SingularSplit::kUp;
  bool fitted_outputs = false;  // W_o compensates for the cache's losses: tensors of elite_output()
  bool fitted_queries = false;  // W_q compensates for missing rotations: tensors of elite_queries()
  // d_ckv, maximum over layers; for S-LRD the budget d_ck + d_cv; nothing without factors
  std::optional<std::size_t> rank;
  std::vector<std::pair<std::size_t, std::size_t>> ranks;  // S-LRD: [layer] d_ck and d_cv
  std::vector<EliteTrial> trials;                          // candidates for r and rank; empty: r and rank were given
  std::optional<GqaTrial> gqa;             // compared with the trials; nothing if no number of heads has their bytes
  std::optional<EliteByLayer> allocation;  // set if sizes by layer were requested
  std::vector<EliteSingularValues> singular_values;  // [layer]; empty without factors

  /// Returns the size of the layer at index `n`; d_ckv is 0 without factors.
  EliteAllocation size_of(std::size_t n) const {
    return by_layer.empty() ? EliteAllocation{r, rank.value_or(0)} : by_layer[n];
  }
};

/// The tensors of a layer that replace W_q [query_heads · head_dim, d_model] and its bias, if it has one.
struct EliteQueries {
  std::string weight, bias;
};
EliteQueries elite_queries(std::size_t layer);

/// Returns the name of a layer's tensor T that multiplies the attention's output [query_heads · head_dim, the same]:
/// W_o becomes W_o · T.
std::string elite_output(std::size_t layer);

/// One pair of factors of a layer, as tensors of the file next to the config: up · down.
struct EliteFactor {
  std::string up, down;  // names
  std::size_t rows = 0;  // of up
  std::size_t rank = 0;  // columns of up, rows of down
};

/// Returns the factors of the layer at index `n`: one joint pair, or a pair for keys and a pair for values. Rows: for
/// each KV head the channels that are not elite, then all values.
std::vector<EliteFactor> elite_factors(const EliteConfig& config, std::size_t n, std::size_t kv_heads,
                                       std::size_t head_dim);

/// Returns the trial with the lowest NLL, the first on ties. @throws Error kData if all trials met NaN or infinity
const EliteTrial& best_trial(const EliteConfig& config);
/// Returns the reason for r and rank: the chosen trial, and the other trials that the held-out documents distinguish
/// from it.
std::string trials_verdict(const EliteConfig& config);

/// Return the members `parameters` and `calibration` of the config.
Json elite_parameters(const EliteConfig& config);
Json elite_calibration(const EliteConfig& config);

/// Reads these members without the trials. check_config must have checked the config.
/// @param where  the file, for messages;  @throws Error kInput
EliteConfig read_elite_config(const Json& config, const std::string& where);
/// Reads `calibration.trials`; empty if the config has none. @throws Error kInput
std::vector<EliteTrial> read_elite_trials(const Json& config, const std::string& where);

/// Returns the parameters of a config that determine how rows are stored: the layers and their storage type.
Json elite_row_parameters(const Json& config);
/// Returns how each of the model's layers stores elite rows and the latent, from these parameters.
/// @throws Error as read_row_types, also for a parameter of another name
std::vector<KvTypes> read_elite_stores(Parameters& parameters);

}  // namespace kvs::inline calibrate
