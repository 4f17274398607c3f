// Reads a PNG file as gray and as colour.
#include "framework/core/error.hpp"
#include "framework/data/image_folder.hpp"
#include "fuzz/harness.hpp"

namespace quantrain::fuzz {

bool accepts(std::span<const uint8_t> input) {
  constexpr int64_t kLimit = int64_t{1} << 20;
  const MemoryFile file(input);
  const auto read = [&](int64_t channels) {
    const Image image = read_png(file.path(), channels, kLimit);
    if (image.shape.rank() != 3 || image.shape[2] != channels) finding("another shape than asked");
    if (std::ssize(image.bytes) != image.shape.elements())
      finding("the bytes do not fill the shape");
    return image.shape;
  };
  const Shape gray = read(1);
  const Shape colour = read(3);
  if (gray[0] != colour[0] || gray[1] != colour[1]) finding("the size depends on the channels");
  return true;
}

}  // namespace quantrain::fuzz
