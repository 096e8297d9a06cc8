// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>

#include "calibrate/config/config.h"
#include "cli/kvcalibrate/commands.h"
#include "export/exporter.h"
#include "io/file.h"
#include "io/staged_output.h"
#include "model/model_tensors.h"
#include "run/model_session.h"
#include "run/outputs.h"
#include "run/progress.h"
#include "version.h"

namespace kvs::inline cli {
namespace {

void check_export_options(const Options& options) {
  const Exporter& exporter = exporter_of(options.text("to"), "--to");
  const std::string to = "--to " + std::string(exporter.name);
  if (!exporter.has_matrices) refuse_options(options, {"matrix-dtype"}, to);
  if (!exporter.has_overlay) refuse_options(options, {"overlay"}, to);
  if (!exporter.has_ranks) refuse_options(options, {"tensor-parallel"}, to);
}

OptionTable export_options() {
  OptionTable table(
      "kvcalibrate export --to NAME --config FILE --model PATH --out PATH [options]",
      "Writes a config, or the model that it converts, in the format of another program.\n" + exporter_lines(),
      {"kvcalibrate export --to gguf-deepseek2 --config elitekv.json --model SmolLM2.gguf --out mla.gguf "
       "--matrix-dtype bf16",
       "kvcalibrate export --to vllm-fp8 --overlay --config fp8.json --model llama/ --out scales/",
       "kvcalibrate export --to mha2mla-rank --config elitekv.json --model SmolLM2.gguf --out ranks.pt"});
  table.value("to", "NAME", "a format of the list above")
      .required()
      .value("config", "FILE", "the config to export")
      .required()
      .value("model", "PATH",
             "the model that the config was made for: GGUF file, or folder with config.json and safetensors")
      .required()
      .value("out", "PATH", "the file or folder to write")
      .required()
      .value("matrix-dtype", "f32|bf16|f16", "type of the matrices, for formats that contain matrices", "f32")
      .formerly("dtype")
      .flag("overlay",
            "for vllm-fp8 and modelopt-map: write no copy of the model, only the files that `kvcalibrate overlay` puts "
            "into it")
      .value("tensor-parallel", "N", "for sglang-scales: number of ranks that share the model", "1")
      .from(1, 4096);
  add_other_weights(table);
  add_run_options(table, false);
  table.check(check_export_options);
  return table;
}

void check_output_of(const Exporter& exporter, const std::filesystem::path& out, const Options& options,
                     const RunOptions& run) {
  if (exporter.kind == StagedOutput::Kind::kFile) return check_outputs(out, {}, options, run);
  check_inputs_spared(std::array{out}, options);
  check_output_folder(out, run.replace(), kExportRecord);
}

void run_export(const Options& options) {
  const RunOptions run = run_options(options);
  const Exporter& exporter = exporter_of(options.text("to"), "--to");
  const std::filesystem::path path = options.text("config");
  std::filesystem::path out = options.text("out");
  if (!out.has_filename()) out = out.parent_path();  // for "folder/"
  check_output_of(exporter, out, options, run);
  const OutputLock lock(out, run.lock);
  const auto model = open_model(options);
  const Json config = read_config(path);
  check_config_model(config, path, *model);
  check_method(exporter, path, config);
  check_model(exporter, model->config());

  StagedOutput staged(out, exporter.kind);
  Progress progress("export", 1.0, run.quiet);
  const ExportJob job{.model = *model,
                      .config = config,
                      .config_path = path,
                      .out = staged.path(),
                      .type = *dtype_from_name(options.text("matrix-dtype")),
                      .overlay = options.flag("overlay"),
                      .tensor_parallel = options.count("tensor-parallel", 1, 4096),
                      .tool_version = kToolVersion,
                      .progress = [&](double done) { progress.update(done); }};
  Json result{{"to", exporter.name}, {"out", out.string()}};
  result.update(exporter.write(job));
  model->tensors().check_unchanged();
  result.update(output_identity(options, model->sha256()));
  if (exporter.kind == StagedOutput::Kind::kFolder) {
    result["files"] = files_of_folder(staged.path());
    write_file_atomically(staged.path() / kExportRecord, dump_json(result) + "\n", false);
    check_output_folder(out, run.replace(), kExportRecord);  // again: the folder may have changed during the export
  }
  staged.commit(run.replace());
  if (result.contains("notes"))
    for (const Json& note : result.at("notes")) print_note("note: " + note.get<std::string>(), run.quiet);
  print_result(run, result, export_text(result));
}

}  // namespace

const Subcommand kExportCommand{"export", export_options, run_export};

}  // namespace kvs::inline cli
