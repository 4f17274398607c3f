#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/shape.hpp"
#include "framework/data/dataset.hpp"

namespace quantrain {

struct Image {
  Shape shape;                 ///< [H, W, C]
  std::vector<uint8_t> bytes;  ///< row-major
};

/// Reads a PNG file with at most 8 bits per channel as gray (1 channel) or colour (3 channels), in
/// sRGB. Transparent pixels are blended with black. Texts, profiles and whatever else the pixels do
/// not depend on are skipped, packed as they are. limit: largest allowed size of the unpacked image
/// in bytes, by default unpacked_limit() of the file's size.
/// Throws: DataError naming path and reason if the file is missing, empty, no PNG file, damaged,
/// truncated or has 16 bits per channel, the image is larger than the limit, or this build has no
/// libpng (QUANTRAIN_PNG is OFF); DataError if channels is neither 1 nor 3.
Image read_png(const std::string& path, int64_t channels, std::optional<int64_t> limit = {});

struct ImageFolderOptions {
  int64_t channels = 3;  ///< 1: gray
  /// Largest allowed size of all unpacked images together in bytes, by default unpacked_limit() of
  /// the size of all files.
  std::optional<int64_t> limit = {};
};

struct ImageFolder {
  Dataset images;
  std::vector<std::string> classes;  ///< name of each label
};

/// Reads PNG files from a folder that contains one subfolder for each class. Classes, and the
/// images of a class, are sorted by the bytes of their names. Hidden entries, and files that are
/// not in a subfolder, are ignored.
/// Throws: DataError naming the path if the folder is missing or has no classes, a class has no
/// images or contains a folder or a file that is not a .png, a link leads nowhere, the images
/// differ in size, or all together exceed the limit; DataError like read_png().
ImageFolder read_image_folder(const std::string& folder, const ImageFolderOptions& options = {});

}  // namespace quantrain
