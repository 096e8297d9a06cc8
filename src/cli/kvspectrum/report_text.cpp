#include <iomanip>
#include <sstream>

#include "cli/kvspectrum/model_report.h"
#include "run/progress.h"

namespace kvs {
namespace {

constexpr int kLabel = 14;

std::string bytes_text(const Json& bytes) { return human_bytes(bytes.get<double>()); }

/// "134.5 M", "7.24 G"
std::string count_text(double count) {
  std::ostringstream text;
  text << std::setprecision(4);
  if (count >= 1e9) {
    text << count / 1e9 << " G";
  } else if (count >= 1e6) {
    text << count / 1e6 << " M";
  } else {
    text << count;
  }
  return text.str();
}

std::ostream& label(std::ostream& out, const char* name) {
  return out << "  " << std::left << std::setw(kLabel) << name << std::setw(0);
}

void write_files(std::ostream& out, const Json& report) {
  double bytes = 0;
  for (const Json& file : report.at("files")) bytes += file.at("bytes").get<double>();
  const std::size_t files = report.at("files").size();
  label(out, "file") << (report.at("format") == "gguf" ? "GGUF" : "safetensors") << ", " << files
                     << (files == 1 ? " file, " : " files, ") << human_bytes(bytes) << '\n';
  label(out, "tensors");
  const char* separator = "";
  for (const Json& type : report.at("tensor_types")) {
    out << separator << type.at("type").get<std::string>() << ' ' << bytes_text(type.at("bytes")) << " ("
        << type.at("tensors") << ')';
    separator = ", ";
  }
  out << '\n';
}

void write_geometry(std::ostream& out, const Json& geometry) {
  label(out, "geometry") << geometry.at("layers") << " layers, d_model " << geometry.at("d_model") << ", d_ff "
                         << geometry.at("d_ff") << ", " << geometry.at("query_heads") << " query and "
                         << geometry.at("kv_heads") << " KV heads of " << geometry.at("head_dim") << " channels\n";
  label(out, "") << "vocabulary " << geometry.at("vocabulary")
                 << (geometry.at("tied_head").get<bool>() ? " (tied head)" : "") << ", context "
                 << geometry.at("context") << " tokens\n";
}

void write_rope(std::ostream& out, const Json& report) {
  const Json& kinds = report.at("rope");
  for (const Json& kind : kinds) {
    label(out, "RoPE") << kind.at("type").get<std::string>() << ", base " << kind.at("base").get<double>() << ", ";
    if (kinds.size() > 1) out << kind.at("layers") << " layers, ";
    if (kind.at("rotary_dim") != report.at("geometry").at("head_dim"))
      out << kind.at("rotary_dim") << " of " << report.at("geometry").at("head_dim") << " channels, ";
    out << kind.at("chunks") << " chunks with wavelengths of " << kind.at("shortest_wavelength").get<double>() << " to "
        << kind.at("longest_wavelength").get<double>() << " tokens\n";
    label(out, "") << kind.at("chunks_below_one_turn") << " chunks turn less than once in the context\n";
  }
}

void write_tokenizer(std::ostream& out, const Json& tokenizer) {
  label(out, "tokenizer");
  if (tokenizer.contains("error")) {
    out << "cannot be used, --tokens-file can: " << tokenizer.at("error").get<std::string>() << '\n';
  } else {
    out << tokenizer.at("kind").get<std::string>() << ", " << tokenizer.at("tokens") << " tokens\n";
    label(out, "BOS");
    if (tokenizer.at("bos").is_null())
      out << "none\n";
    else
      out << "id " << tokenizer.at("bos")
          << (tokenizer.at("adds_bos").get<bool>()
                  ? ", begins every window and prompt: the model's files ask for it\n"
                  : ", not put in: the model's files do not ask for it (--bos on puts it in)\n");
    for (const Json& note : tokenizer.at("notes")) label(out, "") << note.get<std::string>() << '\n';
  }
}

void write_cache(std::ostream& out, const Json& cache) {
  const Json &per_token = cache.at("bytes_per_token"), &per_thousand = cache.at("bytes_per_1024_tokens");
  label(out, "KV cache") << per_token.at("f32") << " bytes per token in f32, " << per_token.at("f16")
                         << " in f16 and bf16\n";
  label(out, "") << "in f16 " << bytes_text(per_thousand.at("f16")) << " per 1,024 tokens, "
                 << bytes_text(cache.at("bytes_at_context_f16")) << " for the whole context";
  if (cache.at("windowed_layers") != 0) out << " (" << cache.at("windowed_layers") << " layers read a sliding window)";
  out << '\n';
}

void write_memory(std::ostream& out, const Json& memory) {
  label(out, "memory") << "at --window " << memory.at("window") << ", in f32 and in bf16\n";
  for (const auto& [command, bytes] : memory.at("f32").items())
    label(out, "") << std::setw(kLabel + 2) << command << std::setw(0) << ' ' << std::setw(10) << bytes_text(bytes)
                   << ' ' << bytes_text(memory.at("bf16").at(command)) << '\n';
}

void write_processor(std::ostream& out, const Json& processor) {
  label(out, "processor") << processor.at("isa").get<std::string>() << ": bf16 is "
                          << (processor.at("bf16_faster").get<bool>() ? "faster" : "no faster") << " than f32 here\n";
}

void write_methods(std::ostream& out, const Json& methods) {
  out << "  methods\n";
  for (const Json& row : methods) {
    const bool applies = row.at("applies").get<bool>();
    out << "    " << (applies ? "yes  " : "no   ") << std::setw(12) << row.at("method").get<std::string>()
        << std::setw(0) << ' ' << row.at("what").get<std::string>() << '\n';
    if (row.contains("reason")) out << std::string(9, ' ') << row.at("reason").get<std::string>() << '\n';
    for (const Json& note : row.value("notes", Json::array()))
      out << std::string(9, ' ') << note.get<std::string>() << '\n';
  }
}

}  // namespace

std::string report_text(const Json& report) {
  std::ostringstream out;
  out << report.at("name").get<std::string>() << ": " << report.at("architecture").get<std::string>() << ", "
      << count_text(report.at("parameters").get<double>()) << " parameters\n";
  write_files(out, report);
  write_geometry(out, report.at("geometry"));
  write_rope(out, report);
  write_tokenizer(out, report.at("tokenizer"));
  write_cache(out, report.at("kv_cache"));
  write_memory(out, report.at("memory"));
  write_processor(out, report.at("processor"));
  write_methods(out, report.at("methods"));
  for (const Json& note : report.at("notes")) out << "  note: " << note.get<std::string>() << '\n';
  return out.str();
}

}  // namespace kvs
