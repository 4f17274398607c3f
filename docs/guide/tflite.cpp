// Runs an int8 .tflite file, and prints it as C99. docs/guide/tflite.md
#include <iostream>
#include <vector>

#include "framework/core/error.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "quant/import/tflite/import_tflite.hpp"

using namespace quantrain;

/// Vertical lines: bright columns, each between two dark ones.
std::vector<float> vertical_lines() {
  std::vector<float> image(64);
  for (size_t i = 0; i < 64; ++i) image[i] = i % 8 % 3 == 1 ? 1.0f : 0.0f;
  return image;
}

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "lines.tflite";
  const IntegerModel model = import_tflite(path);
  std::cout << model;

  const std::vector<float> image = vertical_lines();
  std::vector<float> shares(2);
  model.run(image, std::span<float>(shares));
  std::cout << "horizontal: " << shares[0] << ", vertical: " << shares[1] << '\n';

  std::vector<uint8_t> codes(image.size());
  model.quantize_input(image, codes);
  const C99Options options{.name = "lines"};
  const std::string test = c99_test(model.program(), codes, options);
  write_c99(".", export_c99(model.program(), options), test);
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
