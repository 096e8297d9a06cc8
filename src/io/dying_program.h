#pragma once

#include <filesystem>

namespace kvs {

/// A file, or a folder of files, that goes when this process does, even where nothing is unwound.
/// @throws std::bad_alloc
void remove_with_program(const std::filesystem::path& path);
/// It is in place or gone.
void forget_with_program(const std::filesystem::path& path) noexcept;

/// Removes what was named, the last first: for a program that ends without unwinding. A child that it forked removes
/// nothing.
void remove_files_of_dying_program() noexcept;

}  // namespace kvs
