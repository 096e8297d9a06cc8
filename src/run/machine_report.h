// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "results/machine.h"

namespace kvs::inline run {

/// Returns the processor, memory, GPU, libraries, helper programs and fetched models of this machine.
/// Cost: loads OpenBLAS and LAPACKE. Never throws for a part that is missing.
MachineReport machine_report();

}  // namespace kvs::inline run
