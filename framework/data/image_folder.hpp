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

/// Reads a PNG file of up to 8 bits a channel as gray (1 channel) or colour (3), in sRGB; what is
/// transparent lies over black. limit: bytes of the image, by default unpacked_limit()'s.
/// Throws: DataError naming path and reason if the file is missing, damaged, truncated, has 16 bits
/// a channel or more bytes than the limit, channels are neither 1 nor 3, or this build has no
/// libpng (QUANTRAIN_PNG is OFF).
Image read_png(const std::string& path, int64_t channels, std::optional<int64_t> limit = {});

struct ImageFolderOptions {
  int64_t channels = 3;               ///< 1: gray
  std::optional<int64_t> limit = {};  ///< bytes of one image, as for read_png
};

struct ImageFolder {
  Dataset images;
  std::vector<std::string> classes;  ///< names, by label
};

/// The PNG files of a folder that has a folder for each class. Classes, and the images of a class,
/// come sorted by the bytes of their names; hidden files, and files beside the classes' folders,
/// are passed over.
/// Throws: DataError naming the path if a folder is missing, has no classes or a class no images;
/// if a class has a file that is no .png; if an image is not as large as the first; and as
/// read_png.
ImageFolder read_image_folder(const std::string& folder, const ImageFolderOptions& options = {});

}  // namespace quantrain
