#pragma once

#include <filesystem>
#include <string>

namespace quantrain {

/// The path that a text in UTF-8 names, as all functions of quantrain take it. On POSIX systems, a
/// path may have any bytes. On Windows, std::filesystem::path(text) would read the text in the
/// system's own encoding.
std::filesystem::path to_path(const std::string& text);
/// The inverse.
std::string to_text(const std::filesystem::path& path);

// What paths lead to. On Windows, paths may be longer than 260 characters, which std::filesystem
// does not find there.

/// Whether there is a file or a folder; not if a link leads nowhere. True also if the system does
/// not say: opening it then tells why.
bool exists(const std::string& path);
bool is_folder(const std::string& path);
/// Whether no new file can have this name. True also if it is a link that leads nowhere.
bool is_name_taken(const std::string& path);
/// Makes a folder, and those above it that are missing.
/// Throws: DataError naming the path and the reason.
void make_folders(const std::string& path);
/// Returns false if the system refuses.
bool rename_file(const std::string& from, const std::string& to);
bool remove_file(const std::string& path);
/// The whole path, without links as far as it exists. It is the same for two paths to one file.
std::string resolved(const std::string& path);

}  // namespace quantrain
