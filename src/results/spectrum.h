// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "results/coding_gain.h"
#include "results/head.h"
#include "results/states.h"

namespace kvs::inline results {

/// Summaries of the power spectra of keys and values along tokens (docs/spectra.md). Lists are indexed by position in
/// `layers`.
struct SpectrumResult {
  /// One list for each quantity, indexed by layer or by head.
  struct Summaries {
    std::vector<double> energy = {};
    std::vector<std::vector<double>> low_share = {};  // [..][percent]: share of the energy in the lowest bins
    std::vector<std::size_t> bins_for_energy = {};
    std::vector<double> flatness = {};
    static void fields(auto& of, auto&& field) {
      field("energy", of.energy)("low_share", of.low_share)("bins_for_energy", of.bins_for_energy)("flatness",
                                                                                                   of.flatness);
    }
  };
  struct Table {
    std::size_t bins = 0;
    Summaries layers = {};
    std::vector<Summaries> heads = {};  // [layer]
    static void fields(auto& of, auto&& field) { field("bins", of.bins)("layers", of.layers)("heads", of.heads); }
  };
  /// Power by layer without DC, averaged over neighbouring bins.
  struct Curve {
    std::vector<double> bins = {};
    std::vector<std::vector<double>> power = {};  // [layer][band]
    static void fields(auto& of, auto&& field) { field("bins", of.bins)("power", of.power); }
  };
  struct Tokens {
    Table with_dc = {}, without_dc = {};
    // Absent in files of older versions:
    std::optional<std::vector<std::vector<double>>> chunk_share =
        {};  // [layer][chunk]: share of a layer's energy, with DC
    std::optional<Curve> curve = {};
    static void fields(auto& of, auto&& field) {
      field("with_dc", of.with_dc)("without_dc", of.without_dc);
      field.absent_or("chunk_share", of.chunk_share);
      field.absent_or("curve", of.curve);
    }
  };
  struct State {
    Tokens all_tokens = {};
    std::optional<Tokens> without_sinks = {};
    static void fields(auto& of, auto&& field) {
      field("all_tokens", of.all_tokens);
      field.absent_or("without_sinks", of.without_sinks);
    }
  };
  /// A channel with a constant value over all tokens of each document: its spectrum is DC only.
  struct ConstantChannel {
    std::string state;
    std::size_t layer = 0, head = 0, channel = 0;  // layer: index in the model
    static void fields(auto& of, auto&& field) {
      field("state", of.state)("layer", of.layer)("head", of.head)("channel", of.channel);
    }
  };
  std::string format = "kvspectrum-spectrum";
  std::int64_t version = 1;
  ModelRecord model = {};
  std::string transform = {};
  std::size_t tokens = 0, sinks = 0, documents = 0;
  std::vector<std::size_t> layers = {};
  std::vector<double> low_percents = {};
  double energy_share = 0;
  std::optional<std::vector<std::string>> text_sha256 = {};      // set for a live model
  std::optional<std::string> capture = {}, capture_sha256 = {};  // set for a capture
  BosRecord bos = {};
  std::optional<std::size_t> tokens_dropped = {};
  std::string command = {}, tool_version = {};
  StateMembers<State> states = {};
  std::vector<ConstantChannel> constant_channels = {};
  std::optional<CodingGainResult> coding_gain = {};

  /// Returns the position of 10 % of the bins in `low_percents`.
  std::size_t tenth() const;

  static void fields(auto& of, auto&& field) {
    field("format", of.format)("version", of.version)("model", of.model)("transform", of.transform)(
        "tokens", of.tokens)("sinks", of.sinks)("documents", of.documents)("layers", of.layers)(
        "low_percents", of.low_percents)("energy_share", of.energy_share);
    field.absent_or("text_sha256", of.text_sha256);
    field.absent_or("capture", of.capture);
    field.absent_or("capture_sha256", of.capture_sha256);
    field.absent_or("bos", of.bos);
    field.absent_or("tokens_dropped", of.tokens_dropped);
    field("command", of.command)("tool_version", of.tool_version)("states", of.states)("constant_channels",
                                                                                       of.constant_channels);
    field.absent_or("coding_gain", of.coding_gain);
  }
  static void check(const SpectrumResult& of, const JsonCursor& json);
};

/// Returns the mean over layers of the share of the energy in the lowest tenth of the bins.
double low_tenth(const SpectrumResult& result, const SpectrumResult::Table& table);
/// Returns the summary that the command prints to stdout.
std::string to_text(const SpectrumResult& result);

}  // namespace kvs::inline results
