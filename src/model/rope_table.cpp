#include "model/rope_table.h"

#include <cmath>

namespace kvs::inline model {

RopeMemory make_rope_memory(DeviceMemory& device, const RopeAngles& angles, std::size_t positions) {
  const std::size_t chunks = angles.frequencies.size();
  const auto factor = static_cast<float>(angles.factor);
  std::vector<float> cosine(positions * chunks), sine(positions * chunks);
  for (std::size_t position = 0; position < positions; ++position) {
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const float angle = static_cast<float>(position) * static_cast<float>(angles.frequencies[chunk]);
      cosine[position * chunks + chunk] = factor * static_cast<float>(std::cos(static_cast<double>(angle)));
      sine[position * chunks + chunk] = factor * static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }
  RopeMemory memory{BackendTensor<float, 2>(device, {positions, chunks}),
                    BackendTensor<float, 2>(device, {positions, chunks}), factor};
  device.upload(memory.cosine.view().data(), cosine.data(), memory.cosine.bytes());
  device.upload(memory.sine.view().data(), sine.data(), memory.sine.bytes());
  return memory;
}

}  // namespace kvs::inline model
