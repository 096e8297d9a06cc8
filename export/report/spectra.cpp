// SPDX-License-Identifier: Apache-2.0
#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "results/spectrum.h"
#include "results/spectrum_charts.h"

namespace kvs::inline report {
namespace {

/// Returns the plural of a state: "keys before RoPE".
std::string plural_of(StateKind state) {
  std::string title = title_of(state);
  title.front() = static_cast<char>(title.front() - 'A' + 'a');
  return title;
}

/// Returns one curve per layer, or nothing for a file of an older version.
std::vector<StatePower> power_of(const SpectrumResult& result) {
  std::vector<StatePower> all;
  for (const StateKind state : kStateKinds)
    if (result.states[state] && result.states[state]->all_tokens.curve)
      all.push_back({.key = std::string(name_of(state)),
                     .title = title_of(state),
                     .bins = result.states[state]->all_tokens.curve->bins,
                     .power = result.states[state]->all_tokens.curve->power});
  return all;
}

/// Returns the share of power in the lowest tenth of the frequencies, or an empty string without states.
std::string tenth_finding(const SpectrumResult& result) {
  std::string held, rest;
  for (const StateKind state : kStateKinds) {
    if (!result.states[state]) continue;
    const auto& [with_dc, without_dc, chunks, curve] = result.states[state]->all_tokens;
    held += (held.empty() ? "" : ", ") + shown_percent(low_tenth(result, with_dc)) + " of the energy of " +
            plural_of(state);
    rest += (rest.empty() ? "" : ", ") + shown_percent(low_tenth(result, without_dc)) + " of " + plural_of(state);
  }
  if (held.empty()) return "";
  return "The lowest tenth of the frequencies holds " + held + ". Without the mean of each channel (DC) it holds " +
         rest + "; white noise would have 10\u00A0%.";
}

Markup spectrum_figures(const SpectrumResult& result, const std::string& number) {
  Markup figures;
  if (const auto power = power_of(result); !power.empty())
    figures += figure(page_drawings(power_chart("", result.layers, power, "frequency bin"), "power-" + number),
                      "Power along the token axis, one line for each layer: " + shown_count(result.documents) +
                          " documents of " + shown_count(result.tokens) + " tokens, " +
                          (result.transform == "dct" ? "DCT" : "DFT") +
                          ". Neighbouring bins are averaged over a twelfth of an octave; DC is left out.",
                      result.command);
  if (const draw::Chart chunks = energy_chunks_chart("", result); !chunks.panels.empty())
    figures += figure(page_drawings(chunks, "chunks-" + number),
                      "Share of each layer's energy in FAEDKV's chunks of the spectrum.", result.command);
  if (const draw::Chart shares = energy_share_chart("", result); !shares.panels.empty())
    figures +=
        figure(page_drawings(shares, "share-" + number),
               "Share of the energy in the lowest tenth of the frequencies, by layer and KV head.", result.command);
  return figures;
}

}  // namespace

Section spectra_section(const ReportInputs& inputs) {
  Section section{"spectra", "Spectra", {}, {}};
  std::size_t file = 0;
  for (const SpectrumResult& result : inputs.of<SpectrumResult>()) {
    section.body += spectrum_figures(result, std::to_string(file++));
    if (std::string finding = tenth_finding(result); !finding.empty()) section.findings.push_back(std::move(finding));
  }
  return section;
}

}  // namespace kvs::inline report
