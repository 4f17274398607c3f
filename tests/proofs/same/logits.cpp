// logits MODEL FOLDER FILE: writes the integer logits of a folder's test images. Compiles with this
// tree and with older ones, where the header of IntegerModel lies in another folder, run_codes()
// is called run() or takes other arguments, or output_size() is called outputs().
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/data/dataset.hpp"

static int64_t output_size(const auto& model) {
  if constexpr (requires { model.output_size(); })
    return model.output_size();
  else
    return model.outputs();
}

#if __has_include("framework/integer/integer_model.hpp")
#include "framework/integer/integer_model.hpp"
using Model = quantrain::IntegerModel;
static void run(const auto& model, const std::vector<uint8_t>& x, std::vector<int32_t>& y) {
  if constexpr (requires { model.run_codes(x, y); })
    model.run_codes(x, y);
  else
    model.run(x, y);
}
#else
#include "quant/integer/integer_model.hpp"
using Model = quantrain::quant::IntegerModel;
static void run(const Model& model, const std::vector<uint8_t>& x, std::vector<int32_t>& y) {
  model.run(static_cast<int64_t>(y.size()) / output_size(model), x.data(), y.data());
}
#endif

int main(int argc, char** argv) try {
  using namespace quantrain;
  if (argc != 4) throw Error("logits", "usage: logits MODEL FOLDER FILE");
  const Model model = Model::load(std::string(argv[1]));
  const Dataset images = Dataset::mnist(argv[2], Split::kTest);
  std::vector<uint8_t> x;
  for (int64_t i = 0; i < images.size(); ++i) {
    const auto image = images.image(i);
    x.insert(x.end(), image.begin(), image.end());
  }
  std::vector<int32_t> y(static_cast<size_t>(images.size() * output_size(model)));
  run(model, x, y);
  std::ofstream file(argv[3], std::ios::binary);
  file.write(reinterpret_cast<const char*>(y.data()),
             static_cast<std::streamsize>(y.size() * sizeof(int32_t)));
  if (!file.flush()) throw Error(argv[3], "cannot be written");
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
