#pragma once

#include <string>
#include <utility>
#include <vector>

#include "draw/chart.h"
#include "export/report/markup.h"

namespace kvs {

/// Drawings with what they say, and the command that made their numbers.
Markup figure(const Markup& drawings, const Markup& caption, const std::string& command, bool wide = false);
inline Markup figure(const Markup& drawings, const std::string& caption, const std::string& command) {
  return figure(drawings, text(caption), command);
}
/// A command line that can be opened.
Markup command_block(const std::string& command);
inline Markup paragraph(const std::string& words) { return element("p", words); }
inline Markup heading(const std::string& words) { return element("h3", words); }
/// Folded until it is opened; printed open.
Markup folded(const std::string& summary, const Markup& content);

using Range = draw::Interval;
/// That of a ratio, as an interval of the relative change.
Range as_change(const Range& ratio);
/// The perplexity of a mean NLL: "14.21", or "e^812.3" beyond a double.
std::string perplexity_words(double nll);
/// The same with the standard error that `error`, that of the mean, makes: "14.21 ± 0.35"; without one where it is 0.
std::string perplexity_words(double nll, double error);
/// "+3.0 % (95 %: +1.0 to +5.0 %)"; an interval over parts of documents is "(95 % over parts: …)".
std::string change_words(double change, const Range& interval, bool over_parts = false);
/// The same of perplexity: "perplexity +3.0 % (95 %: …)".
inline std::string perplexity_change(double change, const Range& interval, bool over_parts = false) {
  return "perplexity " + change_words(change, interval, over_parts);
}
/// " (not told from 0)" of an interval that holds 0.
std::string zero_note(const Range& interval);
/// 0 of none.
double mean_of(const std::vector<double>& values);

}  // namespace kvs
