#include "framework/data/image_folder.hpp"

#include <filesystem>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/framework/data/png_files.hpp"
#include "tests/memory_taken.hpp"
#include "tests/sanitized.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::png;
using test::TemporaryFolder;

constexpr int kGray = 0;
constexpr int kColour = 2;
constexpr int kAlpha = 6;

#if QUANTRAIN_PNG
/// Writes folder / name, and creates the folder of its class.
void write(const TemporaryFolder& folder, const std::string& name, std::vector<uint8_t> file) {
  std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path());
  test::write_bytes(folder / name, file);
}
#endif

}  // namespace

TEST_CASE("a build without libpng says so", "[data][image_folder]") {
#if QUANTRAIN_PNG
  CHECK(true);
#else
  QUANTRAIN_CHECK_ERROR(read_png("x.png", 3),
                        DataError,
                        "[png] x.png: this build of quantrain cannot read PNG files");
#endif
}

#if QUANTRAIN_PNG
TEST_CASE("a folder for each class makes a data set, with classes and images in order",
          "[data][image_folder]") {
  const TemporaryFolder folder;
  write(folder, "dog/1.png", png(1, 2, {10, 11, 12, 13, 14, 15}, kColour));
  write(folder, "cat/b.PNG", png(1, 2, {20, 21, 22, 23, 24, 25}, kColour));
  write(folder, "cat/a.png", png(1, 2, {7, 8}, kGray));
  write(folder, "cat/.hidden", {1});
  write(folder, "README", {1});
  const ImageFolder data = read_image_folder(folder.path());
  CHECK(data.classes == std::vector<std::string>{"cat", "dog"});
  CHECK(data.images.image_shape() == Shape{1, 2, 3});
  CHECK(data.images.labels() == std::vector<int32_t>{0, 0, 1});
  const auto bytes = [&](int64_t i) {
    const std::span<const uint8_t> image = data.images.image(i);
    return std::vector<int>(image.begin(), image.end());
  };
  CHECK(bytes(0) == std::vector<int>{7, 7, 7, 8, 8, 8});
  CHECK(bytes(1) == std::vector<int>{20, 21, 22, 23, 24, 25});
  CHECK(bytes(2) == std::vector<int>{10, 11, 12, 13, 14, 15});
}

TEST_CASE("images are read as gray or colour", "[data][image_folder]") {
  const TemporaryFolder folder;
  write(folder, "gray.png", png(2, 1, {0, 200}, kGray));
  const Image gray = read_png(folder / "gray.png", 1);
  CHECK(gray.shape == Shape{2, 1, 1});
  CHECK(gray.bytes == std::vector<uint8_t>{0, 200});
  write(folder, "alpha.png", png(1, 2, {9, 8, 7, 255, 9, 8, 7, 0}, kAlpha));
  CHECK(read_png(folder / "alpha.png", 3).bytes == std::vector<uint8_t>{9, 8, 7, 0, 0, 0});
}

TEST_CASE("the error about images of different sizes names two of them", "[data][image_folder]") {
  const TemporaryFolder folder;
  write(folder, "a/1.png", png(1, 2, {1, 2}, kGray));
  write(folder, "b/2.png", png(2, 1, {1, 2}, kGray));
  QUANTRAIN_CHECK_ERROR(read_image_folder(folder.path(), {.channels = 1}),
                        DataError,
                        "b/2.png: has shape [H, W, C] = [2, 1, 1], but ");
  QUANTRAIN_CHECK_ERROR(read_image_folder(folder.path(), {.channels = 1}),
                        DataError,
                        "a/1.png has [1, 2, 1]: scale or crop the images to one size");
}

TEST_CASE("folders without classes or images are refused, and so are files that are not PNG",
          "[data][image_folder]") {
  const TemporaryFolder folder;
  QUANTRAIN_CHECK_ERROR(read_image_folder(folder / "none"), DataError, "/none: ");
  QUANTRAIN_CHECK_ERROR(read_image_folder(folder.path()),
                        DataError,
                        "has no subfolders: expected one for each class");
  write(folder, "a/.hidden", {1});
  QUANTRAIN_CHECK_ERROR(read_image_folder(folder.path()), DataError, "/a: has no images");
  write(folder, "a/photo.jpg", {1});
  QUANTRAIN_CHECK_ERROR(
      read_image_folder(folder.path()), DataError, "a/photo.jpg: is not a .png file: convert it");
}

TEST_CASE("subfolders of a class and links to nothing are errors", "[data][image_folder]") {
  const TemporaryFolder folder;
  write(folder, "a/1.png", png(1, 2, {1, 2}, kGray));
  write(folder, "b/1.png", png(1, 2, {1, 2}, kGray));
  std::filesystem::create_directory_symlink(folder / "nothing", folder / "aa");
  QUANTRAIN_CHECK_ERROR(read_image_folder(folder.path()), DataError, "/aa: leads nowhere");
  std::filesystem::remove(folder / "aa");
  std::filesystem::create_directory_symlink("b", folder / "aa");
  CHECK(read_image_folder(folder.path()).classes == std::vector<std::string>{"a", "aa", "b"});
  write(folder, "b/more/2.png", png(1, 2, {1, 2}, kGray));
  QUANTRAIN_CHECK_ERROR(
      read_image_folder(folder.path()), DataError, "/more: is a folder in the folder of a class");
}

TEST_CASE("packed texts and profiles in PNG files are not unpacked", "[data][image_folder]") {
  const TemporaryFolder folder;
  // 8 MB of spaces, packed to 8 kB.
  const std::vector<uint8_t> spaces(8'000'000, ' ');
  const std::vector<uint8_t> packed = test::deflated(spaces);
  const auto named = [&](std::vector<uint8_t> data) {
    data.insert(data.end(), packed.begin(), packed.end());
    return data;
  };
  std::vector<test::PngChunk> chunks{{"iCCP", named({'k', 0, 0})}};
  for (int i = 0; i < 20; ++i) {
    chunks.push_back({"zTXt", named({'k', 0, 0})});
    chunks.push_back({"iTXt", named({'k', 0, 1, 0, 0, 0})});
  }
  write(folder, "x.png", png(1, 1, {7}, kGray, 8, chunks));
  const int64_t bytes = test::resident_memory_taken(
      [&] { CHECK(read_png(folder / "x.png", 1).bytes == std::vector<uint8_t>{7}); });
  if (!test::kSanitized) CHECK(bytes < 10'000'000);
}

TEST_CASE("a chunk that is longer than its PNG file takes no memory", "[data][image_folder]") {
  const TemporaryFolder folder;
  const std::vector<uint8_t> whole = png(1, 1, {7}, kGray, 8, {{"PLTE", {1, 2, 3}}});
  for (const char* type : {"PLTE", "tRNS", "gAMA", "IDAT", "ABCD", "zTXt"}) {
    std::vector<uint8_t> file(whole.begin(), whole.begin() + 8 + 25);  // signature and IHDR
    for (const int byte : {0x1f, 0xff, 0xff, 0xff}) file.push_back(static_cast<uint8_t>(byte));
    file.insert(file.end(), type, type + 4);
    file.insert(file.end(), 20, 0);
    write(folder, "x.png", file);
    const int64_t bytes = test::resident_memory_taken([&] {
      QUANTRAIN_CHECK_ERROR(
          read_png(folder / "x.png", 1), DataError, "x.png: truncated, or damaged");
    });
    if (!test::kSanitized) CHECK(bytes < 10'000'000);
  }
  std::vector<uint8_t> longer = png(1, 1, {7}, kGray);
  longer.insert(longer.end(), 30, 0xff);
  write(folder, "x.png", longer);
  CHECK(read_png(folder / "x.png", 1).bytes == std::vector<uint8_t>{7});
}

TEST_CASE("the limit of a folder covers all of its images", "[data][image_folder]") {
  const TemporaryFolder folder;
  for (const char* name : {"a/1.png", "a/2.png", "b/1.png"})
    write(folder, name, png(10, 10, std::vector<uint8_t>(100, 3), kGray));
  CHECK(read_image_folder(folder.path(), {.channels = 1, .limit = 300}).images.size() == 3);
  QUANTRAIN_CHECK_ERROR(read_image_folder(folder.path(), {.channels = 1, .limit = 299}),
                        DataError,
                        "3 images of [10, 10, 1] bytes, the limit for all together is 299");
  // 30 images of 10 MB: more than the 256 MiB that a folder of small files may take.
  const std::vector<uint8_t> large = png(2500, 4000, std::vector<uint8_t>(10'000'000), kGray);
  const TemporaryFolder many;
  for (int i = 0; i < 30; ++i) write(many, "a/" + std::to_string(i) + ".png", large);
  QUANTRAIN_CHECK_ERROR(
      read_image_folder(many.path(), {.channels = 1}), DataError, "30 images of [2500, 4000, 1]");
}

TEST_CASE("the error about a damaged, truncated or too large PNG file names it",
          "[data][image_folder]") {
  const TemporaryFolder folder;
  const auto read = [&](const std::vector<uint8_t>& file, std::optional<int64_t> limit = {}) {
    write(folder, "x.png", file);
    return read_png(folder / "x.png", 1, limit);
  };
  std::vector<uint8_t> samples(64 * 64);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<uint8_t>(i * i % 251);
  const std::vector<uint8_t> whole = png(64, 64, samples, kGray);
  CHECK(read(whole).bytes == samples);
  for (const size_t n : {size_t{0}, size_t{7}, size_t{20}, size_t{40}, whole.size() / 2}) {
    CAPTURE(n);
    QUANTRAIN_CHECK_ERROR(read({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)}),
                          DataError,
                          "x.png: ");
  }
  QUANTRAIN_CHECK_ERROR(read({}), DataError, "x.png: the file is empty");
  QUANTRAIN_CHECK_ERROR(read({'G', 'I', 'F'}), DataError, "x.png: is not a PNG file");
  std::vector<uint8_t> damaged = whole;
  damaged[20] ^= 1;  // a byte of the header, whose checksum is now wrong
  QUANTRAIN_CHECK_ERROR(read(damaged), DataError, "x.png: ");
  QUANTRAIN_CHECK_ERROR(read(whole, 4095), DataError, "[64, 64, 1] bytes, the limit is 4095");
  // The header claims 900 MB.
  QUANTRAIN_CHECK_ERROR(read(png(30000, 30000, {}, kGray)), DataError, "the limit is 2684");
  QUANTRAIN_CHECK_ERROR(
      read(png(1, 1, {1, 2}, kGray, 16)), DataError, "has 16 bits a channel, expected 8");
  QUANTRAIN_CHECK_ERROR(read_png(folder / "x.png", 4), DataError, "4 channels, expected 1");
}
#endif

}  // namespace quantrain
