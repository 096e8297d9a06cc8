#pragma once

#include <string_view>

#include "options/options.h"

namespace kvs::inline cli {

/// Calibrates a method to --budget and writes its config to --out.
void run_budget(std::string_view method, const Options& options);
void run_faedkv(Arguments arguments);
void run_elitekv(Arguments arguments);
void run_transform(Arguments arguments);
void run_freqkv(Arguments arguments);
void run_lagkv(Arguments arguments);
void run_eval(Arguments arguments);
void run_generate(Arguments arguments);
void run_store(Arguments arguments);
void run_compare(Arguments arguments);
void run_latency(Arguments arguments);
void run_cost(Arguments arguments);
void run_export(Arguments arguments);
void run_validate(Arguments arguments);

}  // namespace kvs::inline cli
