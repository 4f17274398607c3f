#include "framework/core/path.hpp"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "framework/core/system/file.hpp"

namespace quantrain {

namespace fs = std::filesystem;

std::filesystem::path to_path(const std::string& text) { return text; }

std::string to_text(const std::filesystem::path& path) { return path.string(); }

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::status(path, ignored).type() != fs::file_type::not_found;
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_name_taken(const std::string& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

void make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return;
  errno = error.value();
  system::fail(path, "the folder cannot be made");
}

bool rename_file(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0;
}

bool remove_file(const std::string& path) { return std::remove(path.c_str()) == 0; }

std::string resolved(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const fs::path whole = fs::weakly_canonical(absolute, error);
  return error ? absolute.string() : whole.string();
}

}  // namespace quantrain
