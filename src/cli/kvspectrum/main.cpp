// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "cli/kvspectrum/commands.h"

int main(int argc, char** argv) {
  const std::array commands{kvs::kInfoCommand,    kvs::kDoctorCommand, kvs::kCaptureCommand, kvs::kSpectrumCommand,
                            kvs::kPerturbCommand, kvs::kRetainCommand, kvs::kScoresCommand,  kvs::kReportCommand,
                            kvs::kMergeCommand,   kvs::kVerifyCommand};
  return kvs::run_program("kvspectrum", "capture, analyse and plot the KV cache of a language model", commands, argc,
                          argv);
}
