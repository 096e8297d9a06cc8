// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "results/task_answers.h"

namespace kvs::inline tasks {

/// @param results  at least one
TaskSummary task_summary(std::span<const TaskResult> results);

}  // namespace kvs::inline tasks
