// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tasks/task.h"

namespace kvs::inline tasks {

std::span<const TaskDefinition* const> task_definitions() {
  static const std::vector<const TaskDefinition*> kTasks = [] {
    std::vector<const TaskDefinition*> all{&kPasskeyTask, &kNeedleTask};
    for (const TaskDefinition& task : kRulerNeedleTasks) all.push_back(&task);
    all.insert(all.end(), {&kVariableTrackingTask, &kCommonWordsTask, &kFrequentWordsTask});
    return all;
  }();
  return kTasks;
}

const TaskDefinition* find_task(std::string_view name) {
  const auto tasks = task_definitions();
  const auto found = std::ranges::find(tasks, name, &TaskDefinition::name);
  return found == tasks.end() ? nullptr : *found;
}

}  // namespace kvs::inline tasks
