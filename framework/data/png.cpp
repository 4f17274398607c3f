#include "framework/core/error.hpp"
#include "framework/data/image_folder.hpp"

#if QUANTRAIN_PNG
#include <png.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "framework/core/file.hpp"
#include "framework/data/idx.hpp"
#endif

namespace quantrain {
namespace {

constexpr const char* kPng = "png";

#if QUANTRAIN_PNG
constexpr uint8_t kSignature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

/// Whether the pixels depend on a chunk. Critical chunks begin with a capital letter.
bool is_needed(std::string_view type) {
  constexpr std::string_view kNeeded[] = {"tRNS", "gAMA", "cHRM", "sRGB"};
  return (type[0] >= 'A' && type[0] <= 'Z') ||
         std::find(std::begin(kNeeded), std::end(kNeeded), type) != std::end(kNeeded);
}

/// Removes the chunks that the pixels do not depend on, because libpng would unpack their texts and
/// profiles, however large they are, and what follows the last chunk. Returns false if a chunk is
/// longer than the file: libpng would take memory for it.
bool remove_other_chunks(std::vector<uint8_t>& file) {
  constexpr size_t kAround = 12;  // length, type and checksum
  size_t to = sizeof kSignature;
  for (size_t from = to; file.size() - from >= kAround;) {
    const uint8_t* const chunk = file.data() + from;
    const size_t length =
        size_t{chunk[0]} << 24 | size_t{chunk[1]} << 16 | size_t{chunk[2]} << 8 | size_t{chunk[3]};
    if (length > file.size() - from - kAround) return false;
    const size_t size = length + kAround;
    const std::string type(reinterpret_cast<const char*>(chunk) + 4, 4);
    if (is_needed(type)) {
      std::memmove(file.data() + to, chunk, size);
      to += size;
    }
    from += size;
    if (type == "IEND") break;
  }
  file.resize(to);
  return true;
}

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
  if (bytes.empty()) throw DataError(kPng, path, ": the file is empty");
  if (bytes.size() < sizeof kSignature ||
      !std::equal(std::begin(kSignature), std::end(kSignature), bytes.begin()))
    throw DataError(kPng, path, ": is not a PNG file");
  const int64_t most = limit.value_or(unpacked_limit(static_cast<int64_t>(bytes.size())));
  if (!remove_other_chunks(bytes))
    throw DataError(kPng, path, ": truncated, or damaged: a chunk is longer than the file");
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
