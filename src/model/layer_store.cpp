// SPDX-License-Identifier: Apache-2.0
#include "model/layer_store.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/interrupt.h"
#include "turns/turns.h"

namespace kvs::inline model {
namespace {

/// Waits until all operations queued on `backend` are done.
void wait_for(Backend& backend, const LayerWeights& weights) {
  const NormWeights& norm = weights.any_norm();
  float probe = 0;
  backend.download(&probe, norm.gain.view().data(), sizeof probe);
}

}  // namespace

LayerStore::LayerStore(Backend& backend, std::span<const double> values, Load load, std::size_t budget,
                       const std::function<void(std::size_t)>& loaded)
    : backend_(&backend), layers_(values.size()), load_(std::move(load)) {
  std::size_t resident = layers_;
  for (std::size_t layer = 0; layer < resident; ++layer) {
    check_interrupt();
    const auto start = std::chrono::steady_clock::now();
    staying_.push_back(load_(backend, layer));
    if (loaded) loaded(layer + 1);
    if (layer > 0) continue;
    wait_for(backend, staying_.front());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    placement_ = {.layer_bytes = staying_.front().bytes(), .seconds_per_layer = took.count()};
    resident = place(values, budget);
  }
}

/// Decides which layers stay, from the bytes of the first. @return their number
std::size_t LayerStore::place(std::span<const double> values, std::size_t budget) {
  const auto first = static_cast<double>(placement_.layer_bytes), room = static_cast<double>(budget);
  const auto bytes_of = [&](double count) { return first * (count / values.front()); };
  const auto add = [&](double sum, double count) { return sum + bytes_of(count); };
  if (std::accumulate(values.begin(), values.end(), 0.0, add) <= room) return layers_;
  const double largest = bytes_of(std::ranges::max(values));
  if (largest > room) {
    throw Error(ErrorCode::kEnvironment, "weights",
                "found room for " + std::to_string(budget) + " bytes of them, expected at least " +
                    std::to_string(static_cast<std::size_t>(largest)) + " for one layer");
  }
  const bool ahead = 2 * largest <= room;
  std::size_t resident = 0;
  for (double held = ahead ? 2 * largest : room; held + bytes_of(values[resident]) <= room; ++resident)
    held += bytes_of(values[resident]);
  placement_.layer_bytes = static_cast<std::size_t>(largest);
  placement_.seconds_per_layer *= largest / first;
  stream_from(resident, ahead);
  return resident;
}

LayerStore::~LayerStore() {
  if (next_.valid()) next_.wait();
}

/// Keeps the layers below `first` resident.
void LayerStore::stream_from(std::size_t first, bool ahead) {
  placement_.streamed_layers = layers_ - first;
  ahead_ = ahead;
  loader_ = make_backend(backend_->device(), backend_->compute_type());
  if (first == 0) staying_.clear();
}

LayerWeights LayerStore::load_whole(std::size_t layer) {
  LayerWeights weights = load_(*loader_, layer);
  wait_for(*loader_, weights);  // the layer is read by another backend's queue
  return weights;
}

void LayerStore::load_ahead(std::size_t layer) {
  next_layer_ = layer;
  ++placement_.layers_read;
  next_ = std::async(std::launch::async, [this, layer, threads = omp_get_max_threads()] {
    omp_set_num_threads(threads);  // a new thread takes the number of threads from the environment only
    return load_whole(layer);
  });
}

void LayerStore::turn_to(std::size_t layer) {
  if (current_) wait_for(*backend_, *current_);  // its readers are queued on the other backend
  std::optional<LayerWeights> ready;
  if (next_.valid()) {
    LayerWeights loaded = next_.get();
    if (next_layer_ == layer) ready = std::move(loaded);
  }
  current_.reset();
  if (!ready) {
    ++placement_.layers_read;
    ready = load_whole(layer);
  }
  current_ = std::move(ready);
  current_layer_ = layer;
  if (ahead_) load_ahead(layer + 1 < layers_ ? layer + 1 : layers_ - placement_.streamed_layers);
}

const LayerWeights& LayerStore::at(std::size_t layer) {
  if (layer < staying_.size()) return staying_[layer];
  if (current_ && current_layer_ == layer) return *current_;
  wait_for_place(this, layer);
  if (!current_ || current_layer_ != layer) turn_to(layer);
  return *current_;
}

std::size_t LayerStore::bytes() const noexcept {
  const std::size_t streamed = ahead_ ? 2 : 1;
  std::size_t sum = placement_.streamed_layers == 0 ? 0 : streamed * placement_.layer_bytes;
  for (const LayerWeights& layer : staying_) sum += layer.bytes();
  return sum;
}

}  // namespace kvs::inline model
