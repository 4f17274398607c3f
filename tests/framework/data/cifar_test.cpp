#include "framework/data/cifar.hpp"

#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::TemporaryFolder;

constexpr size_t kPlane = 1024;

/// Records in which pixel i has red i % 251, green i % 251 + 1 and blue i % 251 + 2.
std::vector<uint8_t> batch(std::initializer_list<uint8_t> labels) {
  std::vector<uint8_t> file;
  for (const uint8_t label : labels) {
    file.push_back(label);
    for (size_t channel = 0; channel < 3; ++channel) {
      for (size_t i = 0; i < kPlane; ++i) file.push_back(static_cast<uint8_t>(i % 251 + channel));
    }
  }
  return file;
}

void check_cifar_rejected(const std::vector<uint8_t>& file, const std::string& text) {
  const TemporaryFolder folder;
  test::write_bytes(folder / "test_batch.bin", file);
  QUANTRAIN_CHECK_ERROR(read_cifar10(folder.path(), Split::kTest), DataError, text);
  QUANTRAIN_CHECK_ERROR(read_cifar10(folder.path(), Split::kTest), DataError, "/test_batch.bin: ");
}

}  // namespace

TEST_CASE("CIFAR-10's planes become image channels, and its batches become one data set",
          "[data][cifar]") {
  const TemporaryFolder folder;
  test::write_bytes(folder / "test_batch.bin", batch({9, 0}));
  for (const std::string part : {"1", "2", "3", "4", "5"}) {
    const auto label = static_cast<uint8_t>(part[0] - '0');
    test::write_bytes(folder / ("data_batch_" + part + ".bin"), batch({label}));
  }
  const Dataset test_set = read_cifar10(folder.path(), Split::kTest);
  CHECK(test_set.image_shape() == Shape{32, 32, 3});
  CHECK(test_set.classes() == 10);
  CHECK(test_set.labels() == std::vector<int32_t>{9, 0});
  const auto image = test_set.image(1);
  CHECK(image[0] == 0);
  CHECK(image[1] == 1);
  CHECK(image[2] == 2);
  CHECK(image[3 * (32 * 2 + 5) + 2] == 32 * 2 + 5 + 2);
  CHECK(read_cifar10(folder.path(), Split::kTrain).labels() == std::vector<int32_t>{1, 2, 3, 4, 5});
}

TEST_CASE("the error about a damaged CIFAR-10 file names its path", "[data][cifar]") {
  const std::vector<uint8_t> whole = batch({1, 2});
  check_cifar_rejected({}, "has 0 bytes, expected 1 to 10000 images of 3073 bytes each");
  for (const size_t size : {size_t{1}, size_t{3072}, size_t{3074}, whole.size() - 1})
    check_cifar_rejected({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)},
                         "has " + std::to_string(size) + " bytes, expected 1 to 10000 images");
  check_cifar_rejected(std::vector<uint8_t>(10001 * 3073),
                       "has 30733073 bytes, expected 1 to 10000 images");
  check_cifar_rejected(batch({1, 10}), "image 1 has label 10, expected 0 to 9");
  const TemporaryFolder folder;
  QUANTRAIN_CHECK_ERROR(read_cifar10(folder.path(), Split::kTrain), DataError, "/data_batch_1.bin");
}

}  // namespace quantrain
