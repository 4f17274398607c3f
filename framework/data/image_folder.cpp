#include "framework/data/image_folder.hpp"

#include <filesystem>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"

namespace quantrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "image folder";

/// Paths in a folder, sorted by the bytes of their names: its subfolders if `folders` is true, its
/// files if it is false. Hidden entries are left out.
std::vector<fs::path> entries(const fs::path& folder, bool folders) {
  std::vector<fs::path> found;
  for (const std::string& name : names_in(folder.string())) {
    std::error_code ignored;
    const fs::path path = folder / name;
    if (name[0] != '.' && fs::is_directory(path, ignored) == folders) found.push_back(path);
  }
  return found;
}

bool is_png(const fs::path& path) {
  std::string suffix = path.extension().string();
  for (char& c : suffix) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return suffix == ".png";
}

}  // namespace

ImageFolder read_image_folder(const std::string& folder, const ImageFolderOptions& options) {
  std::vector<std::string> classes;
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
  Shape shape;
  std::string first;
  for (const fs::path& of_class : entries(folder, true)) {
    const size_t before = labels.size();
    for (const fs::path& path : entries(of_class, false)) {
      if (!is_png(path))
        throw DataError(
            kFolder, path.string(), ": is not a .png file: convert it, or move it elsewhere");
      const Image image = read_png(path.string(), options.channels, options.limit);
      if (first.empty()) {
        first = path.string();
        shape = image.shape;
      }
      if (!(image.shape == shape)) {
        throw DataError(kFolder,
                        path.string(),
                        ": has shape [H, W, C] = ",
                        image.shape,
                        ", but ",
                        first,
                        " has ",
                        shape,
                        ": scale or crop the images to one size");
      }
      pixels.insert(pixels.end(), image.bytes.begin(), image.bytes.end());
      labels.push_back(static_cast<int32_t>(classes.size()));
    }
    if (labels.size() == before) throw DataError(kFolder, of_class.string(), ": has no images");
    classes.push_back(of_class.filename().string());
  }
  if (classes.empty()) {
    throw DataError(
        kFolder, folder, ": has no subfolders: expected one for each class, with its images");
  }
  const auto count = static_cast<int64_t>(classes.size());
  const Shape all{static_cast<int64_t>(labels.size()), shape[0], shape[1], shape[2]};
  return {Dataset(all, std::move(pixels), std::move(labels), count), std::move(classes)};
}

}  // namespace quantrain
