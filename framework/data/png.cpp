#include "framework/core/error.hpp"
#include "framework/data/image_folder.hpp"

#if QUANTRAIN_PNG
#include <png.h>

#include "framework/core/file.hpp"
#include "framework/data/idx.hpp"
#endif

namespace quantrain {
namespace {

constexpr const char* kPng = "png";

#if QUANTRAIN_PNG
/// The state of libpng while it reads an image.
class PngReading {
 public:
  explicit PngReading(const std::string& path) : path_(path) { image_.version = PNG_IMAGE_VERSION; }
  ~PngReading() { png_image_free(&image_); }
  PngReading(const PngReading&) = delete;
  PngReading& operator=(const PngReading&) = delete;

  Image read(std::span<const uint8_t> file, int64_t channels, int64_t limit) {
    check(png_image_begin_read_from_memory(&image_, file.data(), file.size()) != 0);
    if ((image_.format & PNG_FORMAT_FLAG_LINEAR) != 0)
      throw DataError(kPng, path_, ": has 16 bits a channel, expected 8");
    Image image{{int64_t{image_.height}, int64_t{image_.width}, channels}, {}};
    if (image.shape.elements() > limit) {
      throw DataError(kPng,
                      path_,
                      ": an image of ",
                      image.shape,
                      " bytes, the limit is ",
                      limit,
                      "; read it with a larger limit if you trust the file");
    }
    image.bytes.resize(static_cast<size_t>(image.shape.elements()));
    image_.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    const png_color black{0, 0, 0};
    check(png_image_finish_read(&image_, &black, image.bytes.data(), 0, nullptr) != 0);
    return image;
  }

 private:
  void check(bool succeeded) const {
    if (!succeeded) throw DataError(kPng, path_, ": ", image_.message);
  }

  const std::string& path_;
  png_image image_{};
};
#endif

}  // namespace

Image read_png(const std::string& path, int64_t channels, std::optional<int64_t> limit) {
  if (channels != 1 && channels != 3)
    throw DataError(kPng, channels, " channels, expected 1 (gray) or 3 (colour)");
#if QUANTRAIN_PNG
  InputFile file(path);
  std::vector<uint8_t> bytes(static_cast<size_t>(file.left()));
  if (file.read(bytes) < bytes.size()) throw DataError(kPng, path, ": truncated while it was read");
  const int64_t most = limit.value_or(unpacked_limit(static_cast<int64_t>(bytes.size())));
  return PngReading(path).read(bytes, channels, most);
#else
  static_cast<void>(limit);
  throw DataError(kPng,
                  path,
                  ": this build of quantrain cannot read PNG files: build it with libpng "
                  "(libpng-dev in Debian) and QUANTRAIN_PNG=ON");
#endif
}

}  // namespace quantrain
