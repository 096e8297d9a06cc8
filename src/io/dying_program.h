// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace kvs::inline io {

/// Registers a file, or a folder of files, to be removed when this process ends, even without unwinding.
/// @throws std::bad_alloc
void remove_with_program(const std::filesystem::path& path);
/// Unregisters `path`, which is in place or gone.
void forget_with_program(const std::filesystem::path& path) noexcept;

/// Removes the registered files, the last first, when a program ends without unwinding. Does nothing in a forked child.
void remove_files_of_dying_program() noexcept;

}  // namespace kvs::inline io
