// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "export/slots/packed_slot.h"
#include "export/slots/slot_groups.h"
#include "export/slots/state_file.h"

namespace kvs::inline exporting {

/// Codes a state. The newest tokens of each layer, as many as wait in the config's cache, stay as they are.
/// @param where  the state's file, for messages
/// @throws Error kConflict unless the state has the model's layers; kUnsupported for cells that do not hold consecutive
///         positions, for keys and values of different types, and like groups_of(); kData for values that are not
///         finite. Throws Interrupted on a signal.
PackedSlot pack_state(const StateFile& state, const SlotCoder& coder, const std::string& where);

/// A state and the memory of its rows.
struct UnpackedState {
  UnpackedState() = default;
  UnpackedState(const UnpackedState&) = delete;
  UnpackedState(UnpackedState&&) = default;

  StateFile state;
  std::vector<std::vector<std::byte>> rows;
};

/// Decodes a slot. Cells are in the order of their positions. Cost: memory of the whole state.
/// @param where  the slot's file, for messages
/// @throws Error kConflict for a slot of another config, for one of a model with other layers, and, if rows are
///         predicted, with other weights; kInput and kData for a damaged one. Throws Interrupted on a signal.
UnpackedState unpack_state(const PackedSlot& slot, const SlotCoder& coder, const std::string& where);

}  // namespace kvs::inline exporting
