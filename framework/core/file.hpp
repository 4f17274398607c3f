#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quantrain {

/// Tests that write_file(path) can succeed, by making and removing a file in the same folder: for
/// programs to call before they compute what they are to write.
/// Throws: DataError naming the path and the reason.
void check_writable(const std::string& path);

/// Writes the parts one after the other to a temporary file in the same folder, flushes it to the
/// disk and renames it to path: what is there is the old file or the whole new one. A symbolic link
/// is followed.
/// Throws: DataError naming the path and the reason; the temporary file is removed.
void write_file(const std::string& path, std::span<const std::span<const uint8_t>> parts);
void write_file(const std::string& path, std::string_view text);

/// The whole file.
/// Throws: DataError naming the path if it is missing, no regular file, larger than max_bytes or
/// cannot be read.
std::vector<uint8_t> read_file(const std::string& path, int64_t max_bytes);

}  // namespace quantrain
