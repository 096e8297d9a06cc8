// SPDX-License-Identifier: Apache-2.0
#include "export/report/report.h"

#include "core/error.h"
#include "draw/colour.h"
#include "embedded/report_script.h"
#include "embedded/report_style.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"

namespace kvs::inline report {
namespace {

/// Returns the sections in the order of the page.
std::vector<Section> sections_of(const ReportInputs& inputs) {
  std::vector<Section> sections;
  for (const auto make :
       {recommendation_section, comparison_section, allocation_section, evaluations_section, tasks_section,
        traces_section, latency_section, spectra_section, coding_gain_section, perturbation_section, retention_section,
        elite_section, ablation_section, scores_section, configs_section, cost_section, model_section}) {
    Section section = make(inputs);
    if (!section.body.empty()) sections.push_back(std::move(section));
  }
  return sections;
}

/// Returns the model's name. For a report that is not about a model's weights, returns the name of the geometry.
std::string subject(const ReportInputs& inputs) {
  for (const Output& output : inputs.outputs)
    if (output.json.contains("model")) return output.root().at("model").at("name").string();
  for (const Output* cost : inputs.of(OutputKind::kCost)) return cost->root().at("geometry").at("name").string();
  return "no model";
}

Markup page_head(const std::string& name) {
  return element("head",
                 element("meta", {{"charset", "utf-8"}}) +
                     element("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}}) +
                     // The policy keeps the page from loading anything, whatever it contains.
                     element("meta", {{"http-equiv", "Content-Security-Policy"},
                                      {"content",
                                       "default-src 'none'; style-src 'unsafe-inline'; "
                                       "script-src 'unsafe-inline'"}}) +
                     element("meta", {{"name", "color-scheme"}, {"content", "light dark"}}) +
                     element("title", "KV cache of " + name) +
                     verbatim("style", std::string(embedded::report_style) + draw::page_style()));
}

Markup navigation(const std::vector<Section>& sections) {
  Markup links = element("li", element("a", {{"href", "#findings"}}, text("Findings")));
  for (const Section& section : sections)
    links += element("li", element("a", {{"href", "#" + section.id}}, text(section.title)));
  return element("nav", {{"aria-label", "Sections"}}, element("ul", links));
}

Markup section_markup(const std::string& id, const std::string& title, const Markup& content) {
  return element("section", {{"id", id}, {"aria-labelledby", id + "-heading"}},
                 element("h2", {{"id", id + "-heading"}}, text(title)) + content);
}

Markup page_body(const ReportInputs& inputs, const ReportOrigin& origin, const std::string& name) {
  const std::vector<Section> sections = sections_of(inputs);
  Markup main = section_markup("findings", "Findings", findings_list(sections));
  for (const Section& section : sections) main += section_markup(section.id, section.title, section.body);
  const Markup banner = element("p", {{"class", "kicker"}}, text("KV cache report")) + element("h1", name) +
                        element("p", {{"class", "kicker"}}, text(geometry_line(inputs)));
  const Markup footer = paragraph("Made by kvspectrum " + origin.tool_version + " from " +
                                  counted(inputs.outputs.size(), "result") + ".") +
                        command_block(origin.command);
  return element("body", element("a", {{"class", "skip"}, {"href", "#findings"}}, text("Skip to the findings")) +
                             element("header", banner) + navigation(sections) +
                             element("main", {{"id", "main"}}, main) + element("footer", footer) +
                             element("div", {{"id", "tip"}, {"role", "status"}, {"hidden", "hidden"}}) +
                             verbatim("script", embedded::report_script));
}

}  // namespace

std::string render_report(const ReportInputs& inputs, const ReportOrigin& origin) {
  const std::string name = subject(inputs);
  std::string page = "<!DOCTYPE html>\n" +
                     element("html", {{"lang", "en"}}, page_head(name) + page_body(inputs, origin, name)).html() + "\n";
  if (page.size() > kMaxReportBytes)
    throw Error(ErrorCode::kUnsupported, "report",
                "found " + shown_count(page.size()) + " bytes of page from " +
                    counted(inputs.outputs.size(), "result") + ", expected at most " + shown_count(kMaxReportBytes) +
                    ": give fewer");
  return page;
}

}  // namespace kvs::inline report
