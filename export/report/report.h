// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "export/report/inputs.h"

namespace kvs::inline report {

/// The command and version that made a report.
struct ReportOrigin {
  std::string command, tool_version;
};

/// Returns a self-contained page (docs/report.md). It contains style, script and drawings, and loads nothing.
/// @throws Error kInput if a result is malformed; kUnsupported above kMaxReportBytes.
std::string render_report(const ReportInputs& inputs, const ReportOrigin& origin);

inline constexpr std::size_t kMaxReportBytes = 3'000'000;

}  // namespace kvs::inline report
