// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/check.h"

#include "calibrate/config/config.h"
#include "calibrate/config/tensors.h"
#include "calibrate/elitekv/config.h"

namespace kvs::inline calibrate {

void check_elite_config(const Json& config, const std::string& where) {
  Parameters rows({{elite_row_parameters(config), where + ": /parameters/", ErrorCode::kInput}},
                  recorded_shape(config));
  (void)read_elite_stores(rows);
  (void)read_elite_config(config, where);
}

void check_elite_factors(const Json& json, const std::filesystem::path& path) {
  const EliteConfig config = read_elite_config(json, path.string());
  if (!config.rank) return;
  const JsonCursor model = JsonCursor(json, path.string()).at("model");
  const std::size_t kv_heads = model.at("kv_heads").unsigned_integer(),
                    head_dim = model.at("head_dim").unsigned_integer();
  const std::uint64_t queries = model.at("query_heads").unsigned_integer() * head_dim;
  const std::filesystem::path file = path.parent_path() / json.at("files").at(0).at("path").get<std::string>();
  const auto archive = open_safetensors(file);
  const FactorReader read = reader_of(*archive, file);
  const std::string first = elite_factors(config, 0, kv_heads, head_dim).front().down;
  const StoredTensor* const down = archive->find(first);
  const std::uint64_t d_model = down == nullptr || down->shape.size() != 2 ? 0 : down->shape[1];
  for (std::size_t n = 0; n < config.layers.size(); ++n) {
    for (const EliteFactor& factor : elite_factors(config, n, kv_heads, head_dim)) {
      (void)read(factor.up, {factor.rows, factor.rank});
      (void)read(factor.down, {factor.rank, d_model});
    }
    const EliteQueries fitted = elite_queries(config.layers[n]);
    if (config.fitted_queries) (void)read(fitted.weight, {queries, d_model});
    if (config.fitted_queries && archive->find(fitted.bias) != nullptr) (void)read(fitted.bias, {queries});
    if (config.fitted_outputs) (void)read(elite_output(config.layers[n]), {queries, queries});
  }
}

}  // namespace kvs::inline calibrate
