#include "framework/data/image_folder.hpp"

#include <algorithm>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/path.hpp"
#include "framework/data/idx.hpp"

namespace quantrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "image folder";

/// Throws: DataError if the path is a link that leads nowhere.
bool leads_to_folder(const fs::path& path) {
  const std::string text = to_text(path);
  if (!exists(text)) throw DataError(kFolder, text, ": leads nowhere");
  return is_folder(text);
}

/// Paths in a folder, sorted by the bytes of their names. Hidden entries are left out.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const std::string& name : names_in(to_text(folder))) {
    if (name[0] != '.') found.push_back(folder / to_path(name));
  }
  return found;
}

bool is_png(const fs::path& path) {
  std::string suffix = to_text(path.extension());
  for (char& c : suffix) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return suffix == ".png";
}

}  // namespace

ImageFolder read_image_folder(const std::string& folder, const ImageFolderOptions& options) {
  std::vector<std::string> classes;
  std::vector<std::string> paths;
  std::vector<int32_t> labels;
  int64_t file_bytes = 0;
  for (const fs::path& of_class : entries(to_path(folder))) {
    if (!leads_to_folder(of_class)) continue;
    const size_t before = labels.size();
    for (const fs::path& path : entries(of_class)) {
      if (leads_to_folder(path))
        throw DataError(kFolder,
                        to_text(path),
                        ": is a folder in the folder of a class: move its images into that one");
      if (!is_png(path))
        throw DataError(
            kFolder, to_text(path), ": is not a .png file: convert it, or move it elsewhere");
      file_bytes += InputFile(to_text(path)).left();
      paths.push_back(to_text(path));
      labels.push_back(static_cast<int32_t>(classes.size()));
    }
    if (labels.size() == before) throw DataError(kFolder, to_text(of_class), ": has no images");
    classes.push_back(to_text(of_class.filename()));
  }
  if (classes.empty()) {
    throw DataError(
        kFolder, folder, ": has no subfolders: expected one for each class, with its images");
  }
  const int64_t limit = options.limit.value_or(unpacked_limit(file_bytes));
  std::vector<uint8_t> pixels;
  Shape shape;
  for (const std::string& path : paths) {
    const Image image = read_png(path, options.channels, limit);
    if (&path == &paths.front()) {
      shape = image.shape;
      const int64_t of_each = std::max<int64_t>(shape.elements(), 1);
      if (std::ssize(paths) > limit / of_each)
        throw DataError(kFolder,
                        folder,
                        ": ",
                        paths.size(),
                        " images of ",
                        shape,
                        " bytes, the limit for all together is ",
                        limit,
                        "; read them with a larger limit if you trust the files");
      pixels.reserve(paths.size() * static_cast<size_t>(of_each));
    }
    if (!(image.shape == shape)) {
      throw DataError(kFolder,
                      path,
                      ": has shape [H, W, C] = ",
                      image.shape,
                      ", but ",
                      paths.front(),
                      " has ",
                      shape,
                      ": scale or crop the images to one size");
    }
    pixels.insert(pixels.end(), image.bytes.begin(), image.bytes.end());
  }
  const auto count = static_cast<int64_t>(classes.size());
  const Shape all{static_cast<int64_t>(labels.size()), shape[0], shape[1], shape[2]};
  return {Dataset(all, std::move(pixels), std::move(labels), count), std::move(classes)};
}

}  // namespace quantrain
