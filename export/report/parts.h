// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "draw/chart.h"
#include "export/report/markup.h"

namespace kvs::inline report {

/// Returns drawings with a caption and the command that made their numbers.
Markup figure(const Markup& drawings, const Markup& caption, const std::string& command, bool wide = false);
inline Markup figure(const Markup& drawings, const std::string& caption, const std::string& command) {
  return figure(drawings, text(caption), command);
}
/// Returns a command line in a block that can be opened.
Markup command_block(const std::string& command);
inline Markup paragraph(const std::string& words) { return element("p", words); }
inline Markup heading(const std::string& words) { return element("h3", words); }
/// Returns content that is folded until opened. It is printed open.
Markup folded(const std::string& summary, const Markup& content);

using Range = draw::Interval;
/// Converts the interval of a ratio into the interval of the relative change.
Range as_change(const Range& ratio);
/// Returns the perplexity of a mean NLL: "14.21", or "e^812.3" if it does not fit a double.
std::string perplexity_words(double nll);
/// Returns the perplexity with its standard error: "14.21 ± 0.35". `error` is the standard error of the mean NLL; 0:
/// none is shown.
std::string perplexity_words(double nll, double error);
/// Returns a change with its interval: "+3.0 % (95 %: +1.0 to +5.0 %)". An interval over parts of documents is
/// "(95 % over parts: …)".
std::string change_words(double change, const Range& interval, bool over_parts = false);
/// Returns a change of perplexity: "perplexity +3.0 % (95 %: …)".
inline std::string perplexity_change(double change, const Range& interval, bool over_parts = false) {
  return "perplexity " + change_words(change, interval, over_parts);
}
/// Returns " (not told from 0)" if the interval contains 0.
std::string zero_note(const Range& interval);
/// Returns the mean, or 0 if there are no values.
double mean_of(const std::vector<double>& values);

}  // namespace kvs::inline report
