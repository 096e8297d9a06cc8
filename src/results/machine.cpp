// SPDX-License-Identifier: Apache-2.0
#include "results/machine.h"

#include <algorithm>
#include <sstream>

#include "core/human.h"

namespace kvs::inline results {
namespace {

constexpr std::size_t kNameColumn = 16;

std::string padded(const std::string& name) {
  return name + std::string(kNameColumn - std::min(name.size(), kNameColumn - 1), ' ');
}

}  // namespace

bool MachineReport::is_complete() const {
  return std::ranges::none_of(parts, [](const Part& part) { return part.required && part.found.empty(); });
}

std::string to_text(const MachineReport& report) {
  std::ostringstream out;
  out << "kvspectrum " << report.tool_version << '\n';
  for (const MachineReport::Part& part : report.parts) {
    out << "  " << padded(part.name);
    if (!part.found.empty())
      out << part.found << '\n';
    else
      out << (part.required ? "MISSING, needed for " : "not found; used for ") << part.used_for << ": " << part.remedy
          << '\n';
  }
  out << "  " << padded("models") << report.cache << (report.models.empty() ? ": none" : "") << '\n';
  for (const MachineReport::Model& model : report.models)
    out << "  " << padded("") << model.path << ", " << human_bytes(static_cast<double>(model.bytes)) << '\n';
  out << (report.is_complete() ? "every required part is there\n" : "a required part is missing\n");
  return out.str();
}

}  // namespace kvs::inline results
