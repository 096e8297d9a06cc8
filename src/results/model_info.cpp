// SPDX-License-Identifier: Apache-2.0
#include "results/model_info.h"

#include <iomanip>
#include <sstream>
#include <utility>

#include "core/human.h"

namespace kvs::inline results {
namespace {

constexpr int kLabel = 14;

std::string bytes_text(std::uint64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

/// Formats a count: "134.5 M", "7.24 G".
std::string count_text(double count) {
  std::ostringstream text;
  text << std::setprecision(4);
  if (count >= 1e9) {
    text << count / 1e9 << " G";
  } else if (count >= 1e6) {
    text << count / 1e6 << " M";
  } else if (count >= 1e4) {
    text << count / 1e3 << " k";
  } else {
    text << count;
  }
  return text.str();
}

std::ostream& label(std::ostream& out, const char* name) {
  return out << "  " << std::left << std::setw(kLabel) << name << std::setw(0);
}

void write_files(std::ostream& out, const ModelInfo& info) {
  std::uint64_t bytes = 0;
  for (const ModelInfo::File& file : info.files) bytes += file.bytes;
  label(out, "file") << (info.format == "gguf" ? "GGUF" : "safetensors") << ", " << info.files.size()
                     << (info.files.size() == 1 ? " file, " : " files, ") << bytes_text(bytes) << '\n';
  label(out, "tensors");
  const char* separator = "";
  for (const ModelInfo::TensorType& type : info.tensor_types)
    out << std::exchange(separator, ", ") << type.type << ' ' << bytes_text(type.bytes) << " (" << type.tensors << ')';
  out << '\n';
}

/// Writes the kinds of layers, unless all layers have ordinary attention.
void write_kinds(std::ostream& out, const std::vector<ModelInfo::Geometry::Kind>& kinds) {
  if (kinds.size() == 1 && kinds.front().what == "attention") return;
  for (const ModelInfo::Geometry::Kind& kind : kinds)
    label(out, "") << kind.layers << (kind.layers == 1 ? " layer: " : " layers: ") << kind.what << '\n';
}

void write_geometry(std::ostream& out, const ModelInfo::Geometry& geometry) {
  label(out, "geometry") << geometry.layers << (geometry.layers == 1 ? " layer" : " layers") << ", d_model "
                         << geometry.d_model << ", d_ff " << geometry.d_ff.text() << ", " << geometry.query_heads.text()
                         << " query and " << geometry.kv_heads.text() << " KV heads of " << geometry.head_dim.text()
                         << " channels\n";
  write_kinds(out, geometry.kinds);
  if (geometry.latent)
    label(out, "") << "latent attention: all heads read one row, a latent of " << geometry.latent->rank
                   << " channels and a shared key of " << geometry.latent->shared_key << '\n';
  label(out, "") << "vocabulary " << geometry.vocabulary << (geometry.tied_head ? " (tied head)" : "") << ", context "
                 << geometry.context << " tokens\n";
}

void write_experts(std::ostream& out, const ModelInfo& info) {
  if (!info.experts) return;
  const ModelInfo::Experts& experts = *info.experts;
  label(out, "experts") << experts.chosen << " of " << experts.count << " for each token, d_ff " << experts.d_ff;
  if (experts.shared_d_ff != 0) out << ", and a shared one, d_ff " << experts.shared_d_ff;
  out << ", in " << experts.layers << " of " << info.geometry.layers << " layers; "
      << count_text(static_cast<double>(experts.active_parameters)) << " active parameters\n";
}

/// Returns the number of layers with attention.
std::size_t attention_layers(const ModelInfo::Geometry& geometry) {
  std::size_t layers = 0;
  for (const ModelInfo::Geometry::Kind& kind : geometry.kinds)
    if (kind.what.find("attention") != std::string::npos) layers += kind.layers;
  return layers;
}

void write_rope(std::ostream& out, const ModelInfo& info) {
  for (const ModelInfo::Rope& kind : info.rope) {
    label(out, "RoPE") << kind.type << ", base " << kind.base << ", ";
    if (kind.layers < attention_layers(info.geometry)) out << "in " << kind.layers << " layers, ";
    const LayerSizes& head_dim = info.geometry.head_dim;
    if (head_dim.is_list())
      out << "rotation of " << kind.rotary_dim << " channels, ";
    else if (LayerSizes(kind.rotary_dim) != head_dim)
      out << kind.rotary_dim << " of " << head_dim.text() << " channels, ";
    if (const std::size_t all = kind.rotary_dim / 2; kind.chunks < all)
      out << kind.chunks << " of " << all << " chunks turn, with wavelengths of ";
    else
      out << kind.chunks << " chunks with wavelengths of ";
    out << kind.shortest_wavelength << " to " << kind.longest_wavelength << " tokens\n";
    label(out, "") << kind.chunks_below_one_turn << (kind.chunks_below_one_turn == 1 ? " chunk turns" : " chunks turn")
                   << " less than once in the context\n";
  }
}

void write_tokenizer(std::ostream& out, const ModelInfo::Tokenizer& tokenizer) {
  label(out, "tokenizer");
  if (tokenizer.error) {
    out << "cannot be used, --tokens-file can: " << *tokenizer.error << '\n';
    return;
  }
  out << tokenizer.kind.value_or("") << ", " << tokenizer.tokens.value_or(0) << " tokens\n";
  label(out, "BOS");
  if (const auto bos = tokenizer.bos.value_or(std::nullopt))
    out << "id " << *bos
        << (tokenizer.adds_bos.value_or(false)
                ? ", begins every window and prompt: the model's files ask for it\n"
                : ", not put in: the model's files do not ask for it (--bos on puts it in)\n");
  else
    out << "none\n";
  for (const std::string& note : tokenizer.notes.value_or(std::vector<std::string>())) label(out, "") << note << '\n';
}

void write_cache(std::ostream& out, const ModelInfo::KvCache& cache) {
  label(out, "KV cache") << cache.bytes_per_token.f32 << " bytes per token in f32, " << cache.bytes_per_token.f16
                         << " in f16 and bf16\n";
  label(out, "") << "in f16 " << bytes_text(cache.bytes_per_1024_tokens.f16) << " per 1,024 tokens, "
                 << bytes_text(cache.bytes_at_context_f16) << " for the whole context";
  if (cache.windowed_layers != 0)
    out << " (windows and chunks bound " << cache.windowed_layers
        << (cache.windowed_layers == 1 ? " layer)" : " layers)");
  out << '\n';
}

void write_recurrent_states(std::ostream& out, const ModelInfo::RecurrentStates& states) {
  label(out, "states") << states.layers << (states.layers == 1 ? " recurrent layer holds " : " recurrent layers hold ")
                       << bytes_text(states.bytes) << " in f32, however long the text; no method changes them\n";
}

void write_memory(std::ostream& out, const ModelInfo::Memory& memory) {
  label(out, "memory") << "at --window " << memory.window << ", in f32 and in bf16\n";
  const Json f32 = to_json(memory.f32), bf16 = to_json(memory.bf16);  // one line for each command
  for (const auto& [command, bytes] : f32.items())
    label(out, "") << std::setw(kLabel + 2) << command << std::setw(0) << ' ' << std::setw(10)
                   << bytes_text(bytes.get<std::uint64_t>()) << ' ' << bytes_text(bf16.at(command).get<std::uint64_t>())
                   << '\n';
}

void write_methods(std::ostream& out, const std::vector<ModelInfo::MethodRow>& methods) {
  out << "  methods\n";
  for (const ModelInfo::MethodRow& row : methods) {
    out << "    " << (row.applies ? "yes  " : "no   ") << std::setw(12) << row.method << std::setw(0) << ' '
        << row.what;
    if (!row.form.empty()) out << " (" << row.form << ')';
    out << '\n';
    if (row.reason) out << std::string(9, ' ') << *row.reason << '\n';
    for (const std::string& note : row.notes.value_or(std::vector<std::string>()))
      out << std::string(9, ' ') << note << '\n';
  }
}

void write_engines(std::ostream& out, const std::vector<ModelInfo::EngineRow>& engines) {
  out << "  engines, as read at these versions\n";
  for (const ModelInfo::EngineRow& row : engines) {
    out << "    " << std::setw(23) << row.engine << std::setw(0) << ' ' << row.what << " (" << row.version << ")\n";
    std::string types;
    for (const std::string& type : row.types) types += (types.empty() ? "" : " ") + type;
    if (!types.empty()) out << std::string(28, ' ') << types << '\n';
    if (row.reason) out << std::string(28, ' ') << *row.reason << '\n';
  }
}

}  // namespace

std::string to_text(const ModelInfo& info) {
  std::ostringstream out;
  out << info.name << ": " << info.architecture << ", " << count_text(static_cast<double>(info.parameters))
      << " parameters\n";
  write_files(out, info);
  write_geometry(out, info.geometry);
  write_experts(out, info);
  write_rope(out, info);
  write_tokenizer(out, info.tokenizer);
  write_cache(out, info.kv_cache);
  if (info.recurrent_states) write_recurrent_states(out, *info.recurrent_states);
  write_memory(out, info.memory);
  label(out, "processor") << info.processor.isa << ": bf16 is " << (info.processor.bf16_faster ? "faster" : "no faster")
                          << " than f32 here\n";
  write_methods(out, info.methods);
  write_engines(out, info.engines);
  for (const std::string& note : info.notes) out << "  note: " << note << '\n';
  return out.str();
}

}  // namespace kvs::inline results
