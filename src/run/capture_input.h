// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "run/run_options.h"
#include "states/capture_source.h"

namespace kvs::inline run {

/// Options that need --capture.
inline constexpr std::array<std::string_view, 2> kCaptureOptions = {"allow-incomplete", "skip-corrupt"};
/// Returns the layers that --layers names among those in a capture (ascending); for "all", all of them.
std::vector<std::size_t> captured_layers(const Options& options, std::span<const std::int32_t> stored);
/// Returns the states of an opened capture. Prints a note if the capture has no checksums, and how many documents
/// --skip-corrupt leaves out.
std::unique_ptr<CaptureSource> open_capture_source(CaptureReader& reader, Backend& backend, const Options& options,
                                                   const RunOptions& run);
/// Returns `bos` and `tokenizer_sha256` of the texts of --capture, each only if its manifest or journal has it.
/// @throws Error kInput for a value that no run writes
Json texts_of_capture(const Options& options, const CaptureReader& capture);

}  // namespace kvs::inline run
