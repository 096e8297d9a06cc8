// SPDX-License-Identifier: Apache-2.0
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/settings.h"
#include "export/report/table.h"

namespace kvs::inline report {

namespace {

std::string calibrated_on(const JsonCursor& calibration) {
  const std::uint64_t documents = calibration.at("documents").unsigned_integer();
  if (documents == 0) return "nothing: settings as given";
  return counted(documents, "document") + ", " + counted(calibration.at("tokens").unsigned_integer(), "token");
}

}  // namespace

Section configs_section(const ReportInputs& inputs) {
  Section section{"configs", "Configs", {}, {}};
  Table table("Configs for kvcalibrate eval and export",
              {{"File", false}, {"Method", false}, {"Settings", false}, {"Calibrated on", false}});
  Markup commands;
  for (const Output* output : inputs.of(OutputKind::kConfig)) {
    const JsonCursor root = output->root(), calibration = root.at("calibration");
    table.row({output->name, root.at("method").string(), settings_text(root.at("parameters").value()),
               calibrated_on(calibration)});
    commands += element("dt", output->name) + element("dd", element("code", calibration.at("command").string()));
  }
  if (!table.empty())
    section.body = table.markup() + folded("Commands", element("dl", {{"class", "commands"}}, commands));
  return section;
}

}  // namespace kvs::inline report
