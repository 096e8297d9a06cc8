// SPDX-License-Identifier: Apache-2.0
#include "results/trace.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <utility>

#include "draw/numbers.h"
#include "results/evaluation.h"

namespace kvs::inline results {
namespace {

void check_share(const JsonCursor& json, double share) {
  if (share < 0 || share > 1) json.fail("a number from 0 to 1");
}

std::string interval_text(const draw::Interval& interval, double factor = 1) {
  if (!interval) return "";
  std::ostringstream text;
  text << std::setprecision(3) << " (95 % " << factor * interval->first << " to " << factor * interval->second << ')';
  return text.str();
}

std::string predictions_text(const TraceQuality& quality) {
  std::ostringstream text;
  text << "on the trace: KL divergence " << quality.kl.mean << interval_text(quality.kl.interval) << " nats a token ("
       << tail_text(quality.tail) << "), same first choice in " << std::setprecision(4) << 100 * quality.top1.mean
       << " %" << interval_text(quality.top1.interval, 100) << " of tokens, NLL " << quality.nll_difference.mean
       << interval_text(quality.nll_difference.interval) << " above the full cache's " << quality.full_nll;
  return text.str();
}

std::string own_text(const TraceQuality& quality) {
  const OwnContinuations& own = quality.own;
  const std::size_t prompts = quality.samples.size(),
                    same = static_cast<std::size_t>(std::ranges::count_if(
                        quality.samples, [](const TraceSample&each) { return !each.diverged(); }));
  std::ostringstream text;
  text << std::setprecision(4) << "by itself: the same " << own.same_tokens.mean << " tokens"
       << interval_text(own.same_tokens.interval) << " before the first other one";
  if (own.median) text << ", half of the prompts diverge within " << *own.median;
  text << "; " << same << " of " << prompts << " prompts do not diverge\n  lengths: " << own.lengths.tokens
       << " tokens, " << 100 * own.lengths.ended << " % ended; with the full cache " << own.full_lengths.tokens
       << " tokens, " << 100 * own.full_lengths.ended << " % ended";
  return text.str();
}

std::string settings_text(const TraceSettings& settings) {
  if (settings.temperature == 0) return "the most probable tokens";
  std::ostringstream text;
  text << "temperature " << settings.temperature << ", seed " << settings.seed.value_or(0);
  return text.str();
}

/// Share of the prompts that have not diverged after each token.
draw::Panel undiverged_panel(const TraceQuality& quality) {
  std::vector<std::size_t> ends;  // of the prompts that diverge
  std::size_t longest = 1;
  for (const TraceSample& sample : quality.samples) {
    longest = std::max(longest, sample.tokens);
    if (sample.diverged()) ends.push_back(sample.same_tokens);
  }
  std::ranges::sort(ends);
  draw::Panel panel{.key = "undiverged",
                    .title = "Prompts that have not diverged",
                    .description =
                        "Share of the prompts whose continuation by the cache is still that of the full "
                        "cache after a number of tokens.",
                    .x = {.axis = {0, static_cast<double>(longest)}, .name = "generated tokens"},
                    .y = {.axis = {0, 1.05}, .name = "share of the prompts", .label = draw::percent_label}};
  draw::Series series{.look = draw::series_look(0), .points = {}, .join = draw::Series::Join::kSteps, .mark = 2};
  const auto prompts = static_cast<double>(quality.samples.size());
  series.points.push_back({.x = 0, .y = 1, .tooltip = "before the first token: all prompts"});
  for (std::size_t n = 0; n < ends.size(); ++n) {
    if (n + 1 < ends.size() && ends[n + 1] == ends[n]) continue;
    const double share = 1 - static_cast<double>(n + 1) / prompts;
    series.points.push_back({.x = static_cast<double>(ends[n]),
                             .y = share,
                             .tooltip = "after " + draw::counted(ends[n], "token") + ": " + draw::shown_percent(share) +
                                        " of the prompts"});
  }
  panel.series.push_back(std::move(series));
  return panel;
}

}  // namespace

void TraceSettings::check(const TraceSettings& settings, const JsonCursor& json) {
  if (settings.tokens == 0 || std::cmp_greater(settings.tokens, kMostTraceTokens))
    json.at("tokens").fail("1 to " + std::to_string(kMostTraceTokens));
  if (settings.temperature < 0) json.at("temperature").fail("a number of at least 0");
  if (!std::ranges::is_sorted(settings.end_tokens)) json.at("end_tokens").fail("ascending ids");
}

void TraceFile::check(const TraceFile& file, const JsonCursor& json) {
  const TraceFile expected;
  if (file.format != expected.format) json.at("format").fail(expected.format);
  if (file.version != expected.version) json.at("version").fail(std::to_string(expected.version));
  if (file.traces.empty()) json.at("traces").fail("at least one trace");
  for (std::size_t n = 0; n < file.traces.size(); ++n) {
    const JsonCursor trace = json.at("traces").at(n);
    const std::vector<std::int32_t>& ids = file.traces[n].ids;
    if (file.traces[n].prompt.empty()) trace.at("prompt").fail("at least one id");
    if (ids.empty() || ids.size() > file.settings.tokens)
      trace.at("ids").fail("1 to " + std::to_string(file.settings.tokens) + " ids");
  }
}

void TraceSample::check(const TraceSample& sample, const JsonCursor& json) {
  for (const auto& [name, tokens] : {std::pair("tokens", sample.tokens), std::pair("own_tokens", sample.own_tokens)})
    if (tokens == 0 || std::cmp_greater(tokens, kMostTraceTokens))
      json.at(name).fail("1 to " + std::to_string(kMostTraceTokens));
  if (sample.same_tokens > std::min(sample.tokens, sample.own_tokens))
    json.at("same_tokens").fail("at most the tokens of both continuations");
}

void TraceQuality::check(const TraceQuality& quality, const JsonCursor& json) {
  if (quality.samples.empty()) json.at("samples").fail("at least one prompt");
  if (quality.bytes_ratio <= 0) json.at("bytes_ratio").fail("a number above 0");
  check_share(json.at("top1").at("mean"), quality.top1.mean);
  check_share(json.at("own").at("undiverged"), quality.own.undiverged);
}

std::string to_text(const TraceResult& result) {
  const TraceQuality& quality = result.quality;
  const auto [least, most] = std::ranges::minmax(quality.samples, {}, &TraceSample::prompt_tokens);
  std::ostringstream text;
  text << result.method << ": " << draw::counted(quality.samples.size(), "prompt") << " of " << least.prompt_tokens;
  if (most.prompt_tokens > least.prompt_tokens) text << " to " << most.prompt_tokens;
  text << " tokens, " << quality.tokens_scored << " tokens that the full cache generated ("
       << settings_text(result.settings) << ")\n  " << predictions_text(quality) << "\n  " << own_text(quality)
       << "\n  cache " << std::setprecision(4) << 100 * quality.bytes_ratio << " % of the full one, "
       << quality.compressions << " compressions\n";
  if (result.shared_bytes)
    text << "  besides, " << shared_bytes_text(*result.shared_bytes, result.model.rope.window) << '\n';
  if (result.seconds)
    text << std::setprecision(3) << "  seconds: " << result.seconds->trace << " the traces, " << result.seconds->scored
         << " the passes over them, " << result.seconds->own << " this cache's own continuations\n";
  return text.str();
}

draw::Chart trace_chart(const std::string& heading, const TraceQuality& quality) {
  draw::Chart chart = divergence_chart(heading, quality.curves);
  for (draw::Panel& panel : chart.panels) {
    if (panel.key != "position") continue;
    panel.description = "Mean KL divergence of the tokens of each part of the continuations.";
    panel.x.name = "generated token";
  }
  chart.panels.insert(chart.panels.begin(), undiverged_panel(quality));
  draw::arrange(chart, 3);
  return chart;
}

}  // namespace kvs::inline results
