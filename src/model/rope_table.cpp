// SPDX-License-Identifier: Apache-2.0
#include "model/rope_table.h"

#include <vector>

#include "kernels/rope_rows.h"

namespace kvs::inline model {

RopeMemory make_rope_memory(DeviceMemory& device, const RopeAngles& angles, std::size_t positions) {
  const std::size_t chunks = angles.frequencies.size();
  const auto factor = static_cast<float>(angles.factor);
  std::vector<float> cosine(positions * chunks), sine(positions * chunks);
  write_rope_rows(angles.frequencies, angles.factor, 0, positions, cosine.data(), sine.data());
  RopeMemory memory{BackendTensor<float, 2>(device, {positions, chunks}),
                    BackendTensor<float, 2>(device, {positions, chunks}), factor};
  device.upload(memory.cosine.view().data(), cosine.data(), memory.cosine.bytes());
  device.upload(memory.sine.view().data(), sine.data(), memory.sine.bytes());
  return memory;
}

}  // namespace kvs::inline model
