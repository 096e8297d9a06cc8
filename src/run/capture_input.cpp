// SPDX-License-Identifier: Apache-2.0
#include "run/capture_input.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "run/progress.h"

namespace kvs::inline run {
std::vector<std::size_t> captured_layers(const Options& options, std::span<const std::int32_t> stored) {
  std::vector<std::size_t> layers(stored.begin(), stored.end());
  if (options.text("layers") == "all") return layers;
  auto wanted = options.indices("layers", layers.back() + 1);
  for (const std::size_t layer : wanted)
    if (std::ranges::find(layers, layer) == layers.end())
      throw Error(ErrorCode::kUsage, "--layers",
                  "found " + std::to_string(layer) + ", expected layers that the capture holds");
  return wanted;
}

std::unique_ptr<CaptureSource> open_capture_source(CaptureReader& reader, Backend& backend, const Options& options,
                                                   const RunOptions& run) {
  if (!reader.has_checksums())
    print_note(
        "note: " + options.text("capture") + " has no manifest with checksums next to it: its data are not checked",
        run.quiet);
  auto source = std::make_unique<CaptureSource>(reader, backend, options.flag("skip-corrupt"));
  if (source->skipped() > 0)
    print_note("note: left out " + std::to_string(source->skipped()) + " of " + std::to_string(reader.documents()) +
                   " documents: their checksums do not match",
               run.quiet);
  return source;
}

Json texts_of_capture(const Options& options, const CaptureReader& capture) {
  Json texts = Json::object();
  if (!capture.identity().is_object()) return texts;
  const JsonCursor identity(capture.identity(), options.text("capture"), "/identity");
  if (identity.has("bos")) (void)identity.at("bos").unsigned_integer(std::numeric_limits<std::int32_t>::max());
  if (identity.has("tokenizer_sha256")) (void)identity.at("tokenizer_sha256").string();
  for (const char* name : {"bos", "tokenizer_sha256"})
    if (identity.value().contains(name)) texts[name] = identity.at(name).value();
  return texts;
}

}  // namespace kvs::inline run
