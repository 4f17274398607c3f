// Runs a deployed network: loads a saved model, reads the codes of its input from a file or
// standard input, and prints class and logits. If the input's range is [0, 1], the codes are the
// bytes of an image; for other ranges, quantize_pixels() makes codes from such bytes. Needs only
// the runtime library.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/system/process.hpp"
#include "framework/integer/integer_model.hpp"

int main(int argc, char** argv) try {
  const auto [count, values] = quantrain::system::start_program(argc, argv);
  if (count < 2) throw quantrain::Error("deploy", "usage: deploy MODEL [IMAGE]");
  const auto model = quantrain::IntegerModel::load(std::string(values[1]));

  std::vector<uint8_t> image(static_cast<size_t>(model.input_shape().elements()));
  const size_t bytes = count > 2 ? quantrain::InputFile(values[2]).read(image)
                                 : std::fread(image.data(), 1, image.size(), stdin);
  if (bytes != image.size())
    throw quantrain::Error(
        "deploy", "the file has fewer than the ", image.size(), " bytes of an image");
  std::vector<int32_t> logits(static_cast<size_t>(model.output_size()));
  model.run_codes(image, logits);
  int32_t best = 0;
  model.classify_codes(image, {&best, 1});
  std::printf("class %d, logits", best);
  for (const int32_t logit : logits) std::printf(" %d", logit);
  std::printf("\n");
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
