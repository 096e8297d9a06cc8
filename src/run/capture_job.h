// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "io/hdf5/capture_file.h"
#include "run/run.h"
#include "states/capture_split.h"

namespace kvs::inline run {

/// The input of a capture.
struct CaptureJob {
  std::span<const std::vector<std::int32_t>> documents;
  CaptureHeader header;
  Json identity;
  CaptureWriter::Options options;
};

/// Returns the files that the run writes, and checks that they can be written. Drops state of runs with another number
/// of parts with --force. A run that was killed after its last rename has its output in place; the writer recognises
/// it.
/// @throws Error kConflict for such state without --force; as check_inputs_spared() and check_output()
std::vector<std::filesystem::path> checked_files(const CaptureSplit& split, const std::filesystem::path& out,
                                                 const Run& run);
/// Writes one file, into which every rank writes its documents.
/// @return on rank 0 the number of documents that an earlier run has captured
std::size_t capture_whole(const Run& run, const CaptureJob& job, const std::filesystem::path& out);
/// Writes a file for each part, each by one rank. @return as capture_whole
std::size_t capture_parts(const Run& run, const CaptureJob& job, const CaptureSplit& split,
                          const std::filesystem::path& out);

}  // namespace kvs::inline run
