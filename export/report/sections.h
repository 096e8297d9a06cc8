// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "export/report/inputs.h"
#include "export/report/markup.h"

namespace kvs::inline report {

/// A part of the page. A section without a body is left out.
struct Section {
  std::string id, title;
  Markup body;
  std::vector<std::string> findings;  // the findings, in sentences
};

Section recommendation_section(const ReportInputs& inputs);
Section comparison_section(const ReportInputs& inputs);
Section evaluations_section(const ReportInputs& inputs);
Section tasks_section(const ReportInputs& inputs);
Section traces_section(const ReportInputs& inputs);
Section spectra_section(const ReportInputs& inputs);
Section coding_gain_section(const ReportInputs& inputs);
Section elite_section(const ReportInputs& inputs);
Section ablation_section(const ReportInputs& inputs);
Section allocation_section(const ReportInputs& inputs);
Section perturbation_section(const ReportInputs& inputs);
Section retention_section(const ReportInputs& inputs);
Section scores_section(const ReportInputs& inputs);
Section latency_section(const ReportInputs& inputs);
Section configs_section(const ReportInputs& inputs);
Section cost_section(const ReportInputs& inputs);
Section model_section(const ReportInputs& inputs);

/// Returns "llama, 30 layers, 9 query and 3 KV heads of 64 channels", or an empty string without a model.
std::string geometry_line(const ReportInputs& inputs);
/// Returns the findings of the other sections. The list comes first on the page.
Markup findings_list(const std::vector<Section>& sections);

}  // namespace kvs::inline report
