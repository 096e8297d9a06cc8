// SPDX-License-Identifier: Apache-2.0
#include "export/slots/slots.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "calibrate/config/config.h"
#include "cli/kvcalibrate/commands.h"
#include "core/interrupt.h"
#include "export/slots/first_inputs.h"
#include "io/file.h"
#include "io/staged_output.h"
#include "run/model_session.h"
#include "run/outputs.h"
#include "run/progress.h"

namespace kvs::inline cli {
namespace {

bool packs(const Options& options) { return is_first_action(options, "pack", "unpack"); }

OptionTable slots_options() {
  OptionTable table(
      "kvcalibrate slots (pack | unpack) --config FILE --model PATH --slot FILE --out FILE [options]",
      "Codes the KV cache of a sequence that llama.cpp has saved (llama-server --slot-save-path, "
      "llama_state_seq_save_file) with a config of `kvcalibrate transform`, or restores the file that llama.cpp reads. "
      "The newest tokens stay as they are.",
      {"kvcalibrate slots pack --config storage.json --model SmolLM2.gguf --slot prompt.bin --out prompt.kvslot",
       "kvcalibrate slots unpack --config storage.json --model SmolLM2.gguf --slot prompt.kvslot --out prompt.bin"});
  table.positional("ACTION", "pack or unpack")
      .value("config", "FILE", "the config, of method transform")
      .required()
      .value("slot", "FILE", "pack: the file of llama.cpp; unpack: the packed slot")
      .required()
      .value("out", "FILE", "the file to write")
      .required();
  add_model_options(table);
  add_other_weights(table);
  add_run_options(table, false);
  table.check([](const Options& options) { (void)packs(options); });
  return table;
}

/// The outcome of a command.
struct SlotSizes {
  std::size_t tokens = 0;
  std::uintmax_t state_bytes = 0, packed_bytes = 0;
};

std::string slot_text(const std::filesystem::path& out, bool packed, const SlotSizes& sizes) {
  std::array<char, 160> text{};
  const double share = 100 * static_cast<double>(sizes.packed_bytes) / static_cast<double>(sizes.state_bytes);
  std::snprintf(text.data(), text.size(), ": %s %zu tokens, %.1f of %.1f MB (%.1f %%)\n",
                packed ? "packed" : "restored", sizes.tokens, static_cast<double>(sizes.packed_bytes) / 1e6,
                static_cast<double>(sizes.state_bytes) / 1e6, share);
  return out.string() + text.data();
}

/// A command's input, read before its config and its model: a state of llama.cpp, or a packed slot.
struct SlotInput {
  explicit SlotInput(const std::filesystem::path& slot, bool pack) {
    if (pack)
      state = parse_state(file.emplace(slot).bytes(), slot.string());
    else
      packed = read_packed(slot);
    bytes = std::filesystem::file_size(slot);
  }

  std::optional<MappedFile> file;  // of the state
  StateFile state;
  PackedSlot packed;
  std::uintmax_t bytes = 0;
};

/// Writes the packed slot of a state, or the state of a packed slot. Returns the number of tokens.
std::size_t write_slot(const SlotInput& input, const SlotCoder& coder, const std::string& where,
                       const std::filesystem::path& out) {
  if (!input.file) {
    const UnpackedState unpacked = unpack_state(input.packed, coder, where);
    write_state(out, unpacked.state);
    return unpacked.state.caches.front().positions.size();
  }
  const PackedSlot packed = pack_state(input.state, coder, where);
  input.file->check_unchanged();
  write_packed(out, packed);
  return input.state.caches.front().positions.size();
}

void run_slots(const Options& options) {
  const RunOptions run = run_options(options);
  const bool pack = packs(options);
  const std::filesystem::path path = options.text("config"), slot = options.text("slot"), out = options.text("out");
  check_outputs(out, {}, options, run);
  const OutputLock lock(out, run.lock);
  const SlotInput input(slot, pack);
  auto source = open_model(options);
  const ModelConfig model = source->config();
  const auto backend = open_backend(options);  // sets the number of threads
  const ConfigCodec config(path, omp_get_max_threads(),
                           [&](const Json& read, const ModelRecord&) { check_config_model(read, path, *source); });

  ModelSession session;
  PhaseProgress progress(run.quiet);
  const SlotCoder coder{
      .config = config,
      .model = model,
      .model_sha256 = source->sha256(),
      .threads = omp_get_max_threads(),
      .inputs =
          [&](std::span<const std::int32_t> tokens) {
            if (!session.decoder) session = load_model(std::move(source), options, run);
            return first_inputs(*session.decoder, tokens);
          },
      .progress = [&](std::size_t done, std::size_t groups) { progress.update(options.text("ACTION"), done, groups); }};
  StagedOutput staged(out, StagedOutput::Kind::kFile);
  SlotSizes sizes;
  sizes.tokens = write_slot(input, coder, slot.string(), staged.path());
  const std::uintmax_t written = std::filesystem::file_size(staged.path());
  sizes.state_bytes = pack ? input.bytes : written;
  sizes.packed_bytes = pack ? written : input.bytes;
  check_interrupt();
  staged.commit(run.replace());
  Json result{{"action", options.text("ACTION")},
              {"slot", slot.string()},
              {"out", out.string()},
              {"tokens", sizes.tokens},
              {"state_bytes", sizes.state_bytes},
              {"packed_bytes", sizes.packed_bytes}};
  result.update(output_identity(options, coder.model_sha256));
  print_result(run, result, slot_text(out, pack, sizes));
}

}  // namespace

const Subcommand kSlotsCommand{"slots", slots_options, run_slots};

}  // namespace kvs::inline cli
