// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "cli/kvcalibrate/commands.h"

int main(int argc, char** argv) {
  const std::array commands{
      kvs::kFaedkvCommand,    kvs::kElitekvCommand, kvs::kFreqkvCommand,       kvs::kLagkvCommand,
      kvs::kTransformCommand, kvs::kKvtcCommand,    kvs::kTriattentionCommand, kvs::kOscarCommand,
      kvs::kStoreCommand,     kvs::kEvalCommand,    kvs::kCompareCommand,      kvs::kRecommendCommand,
      kvs::kGenerateCommand,  kvs::kLatencyCommand, kvs::kCostCommand,         kvs::kExportCommand,
      kvs::kOverlayCommand,   kvs::kSlotsCommand,   kvs::kValidateCommand};
  return kvs::run_program("kvcalibrate", "calibrate, compare and export compressed KV caches", commands, argc, argv);
}
