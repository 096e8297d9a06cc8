// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "io/json_fields.h"
#include "io/layer_sizes.h"

namespace kvs::inline results {

/// The cost of the methods for one geometry, computed with the formulas of their papers (docs/cost.md).
struct CostResult {
  struct Geometry {
    std::string name;
    std::size_t layers = 0, d_model = 0, d_ff = 0;
    LayerSizes query_heads = {}, kv_heads = {}, head_dim = {};  // of the layers with a KV cache
    std::size_t vocabulary = 0;
    static void fields(auto& of, auto&& field) {
      field("name", of.name)("layers", of.layers)("d_model", of.d_model)("d_ff", of.d_ff)(
          "query_heads", of.query_heads)("kv_heads", of.kv_heads)("head_dim", of.head_dim)("vocabulary", of.vocabulary);
    }
  };
  struct Freqkv {
    struct Row {
      std::size_t tokens = 0;
      double full_tflops = 0, dropping_tflops = 0, freqkv_tflops = 0, transform_tflops = 0;
      std::vector<std::size_t> compressions;  // one value for each of `gammas`
      static void fields(auto& of, auto&& field) {
        field("tokens", of.tokens)("full_tflops", of.full_tflops)("dropping_tflops", of.dropping_tflops)(
            "freqkv_tflops", of.freqkv_tflops)("transform_tflops", of.transform_tflops)("compressions",
                                                                                        of.compressions);
      }
    };
    std::size_t cache_size = 0, sinks = 0;
    double gamma = 0;  // γ that the FLOPs are computed for
    std::vector<double> gammas;
    std::vector<Row> rows;
    static void fields(auto& of, auto&& field) {
      field("cache_size", of.cache_size)("sinks", of.sinks)("gamma", of.gamma)("gammas", of.gammas)("rows", of.rows);
    }
  };
  struct Lagkv {
    struct Row {
      std::size_t tokens = 0, lag = 0;
      std::vector<std::size_t> held;  // tokens, one value for each of `ratios`
      static void fields(auto& of, auto&& field) { field("tokens", of.tokens)("lag", of.lag)("held", of.held); }
    };
    std::size_t sinks = 0;
    std::vector<double> ratios;
    std::vector<Row> rows;
    static void fields(auto& of, auto&& field) { field("sinks", of.sinks)("ratios", of.ratios)("rows", of.rows); }
  };
  struct Elitekv {
    using Pair = std::pair<std::size_t, std::size_t>;  // r and d_ckv
    struct Row {
      double ratio = 0;
      std::size_t count = 0;
      std::vector<Pair> pairs;
      static void fields(auto& of, auto&& field) { field("ratio", of.ratio)("count", of.count)("pairs", of.pairs); }
    };
    struct Bound {
      std::size_t r = 0, d_ckv = 0;
      static void fields(auto& of, auto&& field) { field("r", of.r)("d_ckv", of.d_ckv); }
    };
    std::size_t values_per_token_and_layer = 0;
    std::vector<Row> rows;
    std::vector<Bound> bounds;  // the largest d_ckv without extra parameters
    static void fields(auto& of, auto&& field) {
      field("values_per_token_and_layer", of.values_per_token_and_layer)("rows", of.rows)("bounds", of.bounds);
    }
  };
  struct Faedkv {
    struct Row {
      std::size_t tokens = 0, bins = 0;
      std::vector<std::size_t> kept_bins;  // one value for each of `shares`
      std::vector<double> bytes_ratio;
      static void fields(auto& of, auto&& field) {
        field("tokens", of.tokens)("bins", of.bins)("kept_bins", of.kept_bins)("bytes_ratio", of.bytes_ratio);
      }
    };
    std::size_t sinks = 0, recent = 0, chunks = 0;
    std::vector<double> shares;
    std::vector<Row> rows;
    static void fields(auto& of, auto&& field) {
      field("sinks", of.sinks)("recent", of.recent)("chunks", of.chunks)("shares", of.shares)("rows", of.rows);
    }
  };
  Geometry geometry;
  double products_per_token = 0;
  std::size_t bytes_per_token = 0;
  Freqkv freqkv;
  Lagkv lagkv;
  Elitekv elitekv;
  Faedkv faedkv;
  static void fields(auto& of, auto&& field) {
    field("geometry", of.geometry)("products_per_token", of.products_per_token)("bytes_per_token", of.bytes_per_token)(
        "freqkv", of.freqkv)("lagkv", of.lagkv)("elitekv", of.elitekv)("faedkv", of.faedkv);
  }
};

/// One method's numbers, formatted for the terminal and the HTML page.
struct CostTable {
  struct Cell {
    std::string text, page;  // formatted for the terminal and for the page
    double value = 0;
  };
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
};
std::vector<CostTable> cost_tables(const CostResult& of);
std::string to_text(const CostResult& of);

}  // namespace kvs::inline results
