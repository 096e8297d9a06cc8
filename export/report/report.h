#pragma once

#include <string>

#include "export/report/inputs.h"

namespace kvs {

/// Where a report comes from.
struct ReportOrigin {
  std::string command, tool_version;
};

/// One self-contained page (docs/report.md): style, script and drawings are in it, and it asks for nothing.
/// @throws Error kInput where a result is not as its program writes it; kUnsupported above kMaxReportBytes.
std::string render_report(const ReportInputs& inputs, const ReportOrigin& origin);

inline constexpr std::size_t kMaxReportBytes = 3'000'000;

}  // namespace kvs
