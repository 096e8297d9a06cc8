#include <algorithm>
#include <array>

#include "export/exporter.h"
#include "export/exporters/rank_files.h"

namespace kvs {
namespace {

constexpr auto kFile = StagedOutput::Kind::kFile;

constexpr std::array kExporters{
    Exporter{"elitekv-rank", "elite sets as the pickle that EliteKV's conversion script reads", "elitekv", "all layers",
             kFile, write_elitekv_rank},
    Exporter{"mha2mla-rank", "elite sets as the ranks that MHA2MLA reads (torch.save)", "elitekv",
             "all layers, sets per KV head", kFile, write_mha2mla_rank},
};

}  // namespace

std::span<const Exporter> exporters() noexcept { return kExporters; }

const Exporter* find_exporter(std::string_view name) noexcept {
  const auto row = std::ranges::find(kExporters, name, &Exporter::name);
  return row == kExporters.end() ? nullptr : row;
}

}  // namespace kvs
