#include "model/work.h"

#include <algorithm>

namespace kvs::inline model {
double layer_products(const ModelConfig& model) {
  const std::size_t rows = (2 * model.query_heads() + 2 * model.kv_heads()) * model.head_dim();
  const auto layers = static_cast<double>(model.layers());
  double width = 0;  // mean over the layers
  for (const LayerConfig& layer : model.layer) width += static_cast<double>(layer.feed_forward.active_d_ff()) / layers;
  return static_cast<double>(model.d_model) * (static_cast<double>(rows) + (model.arithmetic.gated ? 3 : 2) * width);
}

double products_per_token(const ModelConfig& model) {
  return static_cast<double>(model.layers()) * layer_products(model) +
         static_cast<double>(model.d_model * model.vocabulary);
}

double layer_flops(const ModelConfig& c, double tokens, double past) {
  const auto width = static_cast<double>(c.query_heads() * c.head_dim());
  // Scores and their product with V: a multiply-add each per pair; of the new tokens among themselves, the causal half.
  return 2 * layer_products(c) * tokens + 4 * width * tokens * (past + tokens / 2);
}

double head_flops(const ModelConfig& c, double tokens) {
  return 2 * static_cast<double>(c.d_model) * static_cast<double>(c.vocabulary) * tokens;
}

double forward_flops(const ModelConfig& c, double tokens) {
  return static_cast<double>(c.layers()) * layer_flops(c, tokens) + head_flops(c, tokens);
}

double pass_memory(const ModelConfig& c, double weight_bytes, std::size_t tokens) {
  // Residual stream, normed input, fused qkv with its head-major copy, gate and up with their product.
  const std::size_t row = 2 * c.d_model + 2 * (c.query_heads() + 2 * c.kv_heads()) * c.head_dim() + 3 * c.d_ff();
  return weight_bytes + static_cast<double>(tokens * row * sizeof(float));
}

double ablation_memory(const ModelConfig& config, double weight_bytes, std::size_t tokens) {
  constexpr std::size_t kBatchRows = 4096;
  return pass_memory(config, weight_bytes, tokens) + pass_memory(config, 0, std::max(tokens, kBatchRows));
}

}  // namespace kvs::inline model
