#pragma once

#include "options/options.h"

namespace kvs::inline cli {

void run_capture(Arguments arguments);
void run_info(Arguments arguments);
void run_merge(Arguments arguments);
void run_perturb(Arguments arguments);
void run_report(Arguments arguments);
void run_retain(Arguments arguments);
void run_scores(Arguments arguments);
void run_spectrum(Arguments arguments);
void run_verify(Arguments arguments);

}  // namespace kvs::inline cli
