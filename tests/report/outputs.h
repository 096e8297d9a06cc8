// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "export/report/inputs.h"
#include "io/file.h"

namespace kvs::testing {

/// A result under tests/report/outputs: of the end-to-end tests' model, with numbers cut to five digits. Comparison and
/// task are made by hand, so that their findings are known.
inline std::filesystem::path output_path(const std::string& name) {
  return std::filesystem::path(KVS_REPORT_OUTPUTS) / name;
}
inline Json output_json(const std::string& name) {
  return parse_json(read_text_file(output_path(name), 1 << 20), name);
}
inline ReportInputs read_outputs(const std::vector<std::string>& names) {
  std::vector<std::filesystem::path> paths;
  paths.reserve(names.size());
  for (const std::string& name : names) paths.push_back(output_path(name));
  return read_report_inputs(paths);
}
/// One result that a test has changed.
inline ReportInputs changed_output(OutputKind kind, Json json) {
  return {.outputs = {{"changed.json", "changed.json", kind, std::move(json)}}, .skipped = {}};
}

}  // namespace kvs::testing
