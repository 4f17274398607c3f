// For compare.py.
//   save_networks write FOLDER: saves networks that together contain all operations. Each network
//     gets a folder with its model, its inputs and the integers that the engine computes from them.
//   save_networks check: reads file names from standard input, and prints for each file whether the
//     engine accepts it.
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/integer/integer_model.hpp"
#include "layers/layers.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/framework/integer/programs.hpp"

namespace quantrain::integer::test {
namespace {

constexpr int64_t kSamples = 3;

template <class T>
void write(const std::string& path, std::span<const T> values) {
  const std::span<const uint8_t> parts[] = {
      {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()}};
  write_file(path, parts);
}

/// Saves raw values of one input, inside and outside of its range, and the codes that the engine
/// computes from them.
void save_raw_values(const IntegerModel& model, const std::string& folder, size_t i) {
  Random random(7 + i);
  const InputFeatures features = model.input_features(i);
  const Range range = model.input_params(i).float_range();
  std::vector<float> raw;
  for (int64_t k = 0; k < kSamples * model.input_shape(i).elements(); ++k) {
    const float z = random.uniform(1.25f * range.min - 0.1f, 1.25f * range.max);
    const auto f = static_cast<size_t>(features.empty() ? 0 : k % features.size());
    raw.push_back(features.empty() ? z : raw_value(z, features.offset[f], features.scale[f]));
  }
  std::vector<uint8_t> codes(raw.size());
  model.quantize_input(raw, codes, i);
  write<float>(folder + "/raw" + std::to_string(i), raw);
  write<uint8_t>(folder + "/encoded" + std::to_string(i), codes);
}

void save(const std::string& name, const IntegerModel& model, const std::string& all) {
  const std::string folder = all + '/' + name;
  std::filesystem::create_directories(folder);
  model.save(folder + "/model", {{"name", name}});
  const Program& program = model.program();
  std::vector<std::vector<uint8_t>> codes;
  std::vector<std::span<const uint8_t>> inputs;
  std::vector<const uint8_t*> pointers;
  for (size_t i = 0; i < model.input_count(); ++i) {
    codes.push_back(
        random_codes(kSamples * model.input_shape(i).elements(), model.input_params(i), i));
    write<uint8_t>(folder + "/input" + std::to_string(i), codes.back());
    save_raw_values(model, folder, i);
  }
  for (const auto& input : codes) {
    inputs.emplace_back(input);
    pointers.push_back(input.data());
  }
  model.trace(kSamples, pointers, [&](size_t step, const void* output) {
    const Value& value = program.value(program.steps[step].output);
    const auto count = static_cast<size_t>(kSamples * value.shape.elements());
    const std::string path = folder + "/step" + std::to_string(step);
    if (value.is_codes()) {
      write<uint8_t>(path, {static_cast<const uint8_t*>(output), count});
    } else {
      write<int32_t>(path, {static_cast<const int32_t*>(output), count});
    }
  });
  std::vector<std::vector<int32_t>> results;
  for (size_t i = 0; i < model.output_count(); ++i)
    results.emplace_back(static_cast<size_t>(kSamples * model.output_size(i)));
  std::vector<std::span<int32_t>> outputs(results.begin(), results.end());
  model.run_codes(inputs, outputs);
  for (size_t i = 0; i < results.size(); ++i)
    write<int32_t>(folder + "/output" + std::to_string(i), results[i]);
}

/// Convolutions with groups, and with weights of `bits` bits. Kernels and strides differ by axis,
/// and so does the padding of the first convolution.
Program convolutions(int bits) {
  Builder b;
  const int x = b.input({7, 6, 4}, kX);
  const kernels::Conv2dShape grouped{.n = 1,
                                     .h = 7,
                                     .w = 6,
                                     .c = 4,
                                     .o = 6,
                                     .kh = 3,
                                     .kw = 2,
                                     .stride_h = 2,
                                     .stride_w = 1,
                                     .pad_h = 2,
                                     .pad_w = 1,
                                     .groups = 2};
  const RandomProduct first({.outputs = 6, .length = 12, .x = kX, .weight_bits = bits}, 1);
  const Shape between{grouped.oh(), grouped.ow(), 6};
  const int y =
      b.codes("grouped", QuantizedConv2d{grouped, first.behind(kSigned)}, {x}, between, kSigned);
  const kernels::Conv2dShape depthwise{.n = 1,
                                       .h = grouped.oh(),
                                       .w = grouped.ow(),
                                       .c = 6,
                                       .o = 6,
                                       .kh = 2,
                                       .kw = 3,
                                       .stride_w = 2,
                                       .groups = 6};
  const RandomProduct second({.outputs = 6, .length = 6, .x = kSigned, .weight_bits = bits}, 2);
  b.program.outputs = {b.accumulators("depthwise",
                                      QuantizedConv2d{depthwise, second.product},
                                      {y},
                                      {depthwise.oh(), depthwise.ow(), 6},
                                      second.scale)};
  return b.program;
}

/// Convolutions with a padding of its own for each side, and a mean of codes.
Program uneven() {
  Builder b;
  const QParams params{{.bits = 8, .is_signed = true}, -1, {0.02f}, {-90}};
  const int x = b.input({6, 8, 4}, params);
  kernels::Conv2dShape after{.h = 6, .w = 8, .c = 4, .o = 6, .kh = 3, .kw = 3, .groups = 2};
  after.stride_h = after.stride_w = 2;
  after.end_h = after.end_w = 1;
  const RandomProduct first({.outputs = 6, .length = after.reduction(), .x = params}, 1);
  const int y =
      b.codes("after", QuantizedConv2d{after, first.behind(params)}, {x}, {3, 4, 6}, params);
  kernels::Conv2dShape pool = pool_shape(3, 4, 6, 2, 2, 0);
  pool.end_h = 1;
  const auto mean = QuantizedAvgPool2d::make_mean_of_codes(pool, params, Activation::kRelu);
  const int z = b.codes("mean", mean, {y}, {2, 2, 6}, params);
  kernels::Conv2dShape before{.h = 2, .w = 2, .c = 6, .o = 6, .kh = 2, .kw = 3, .groups = 6};
  before.pad_h = 1;
  before.pad_w = 2;
  before.end_h = before.end_w = -1;
  const RandomProduct second({.outputs = 6, .length = 6, .x = params}, 2);
  b.program.outputs = {b.accumulators("before",
                                      QuantizedConv2d{before, second.product},
                                      {z},
                                      {before.oh(), before.ow(), 6},
                                      second.scale)};
  return b.program;
}

/// A kernel whose dilation differs by axis, and a kernel of a single row, like those for signals.
Program dilated() {
  Builder b;
  const int x = b.input({9, 8, 4}, kX);
  kernels::Conv2dShape whole{.h = 9, .w = 8, .c = 4, .o = 6, .kh = 3, .kw = 2, .groups = 2};
  whole.pad_h = whole.pad_w = 2;
  whole.stride_w = 2;
  whole.dilation_h = 3;
  whole.dilation_w = 4;
  const RandomProduct first({.outputs = 6, .length = whole.reduction(), .x = kX}, 1);
  const Shape between{whole.oh(), whole.ow(), 6};
  const int y =
      b.codes("whole", QuantizedConv2d{whole, first.behind(kSigned)}, {x}, between, kSigned);
  kernels::Conv2dShape row{.h = 1, .w = between.elements() / 6, .c = 6, .o = 6, .kw = 3};
  row.groups = 6;
  row.pad_w = 1;
  row.dilation_w = 5;
  const RandomProduct second({.outputs = 6, .length = 3, .x = kSigned}, 2);
  b.program.outputs = {b.accumulators(
      "row", QuantizedConv2d{row, second.product}, {y}, {row.ow(), 6}, second.scale)};
  return b.program;
}

/// Pools whose last windows reach beyond the image, and one that divides by the whole window.
Program pooled() {
  Builder b;
  const int x = b.input({6, 7, 5}, kX);
  kernels::Conv2dShape largest = pool_shape(6, 7, 5, 3, 2, 0);
  largest.end_h = 1;
  const int y = b.codes("largest", QuantizedMaxPool2d{largest}, {x}, {3, 3, 5}, kX);
  kernels::Conv2dShape part = pool_shape(3, 3, 5, 2, 2, 0);
  part.end_h = part.end_w = 1;
  const auto inside = QuantizedAvgPool2d::make(part, kX, kY, Activation::kNone);
  const int z = b.codes("inside", inside, {y}, {2, 2, 5}, kY);
  const kernels::Conv2dShape whole = pool_shape(2, 2, 5, 2, 1, 1);
  const auto padded = QuantizedAvgPool2d::make(whole, kY, kSigned, Activation::kNone, 4);
  b.program.outputs = {b.codes("padded", padded, {z}, {3, 3, 5}, kSigned)};
  return b.program;
}

/// Multipliers that no sensible network has: 0, and those with the smallest and the largest shift.
Program extremes() {
  Program program = every_operation();
  auto& product = std::get<QuantizedLinear>(program.steps[7].operation).product;
  product.output->m0 = std::vector<int32_t>{0, 1 << 30, 2147483647, 1 << 30, 2147483647};
  product.output->shift = std::vector<int32_t>{1, 1, 62, 62, 31};
  const auto at = [&](every::ValueId id) -> Operation& {
    return program.steps[every::step_position(id)].operation;
  };
  std::get<QuantizedMul>(at(every::kScaled)).multiplier = {2147483647, 1};
  auto& sum = std::get<QuantizedAdd>(at(every::kTotal));
  for (QuantizedAdd::Operand& operand : sum.operands) operand.m = 2147483647;
  sum.shift = 1;
  return program;
}

/// Steps with the same weights and biases, and one with other weights, of 3 bits.
Program shared() {
  Builder b;
  int x = b.input({5}, kX);
  const RandomProduct same({.outputs = 5, .length = 5, .x = kX, .weight_bits = 3}, 1);
  for (int i = 0; i < 3; ++i)
    x = b.codes("step", QuantizedLinear{1, 5, 5, same.behind(kX)}, {x}, {5}, kX);
  const RandomProduct last({.outputs = 2, .length = 5, .x = kX, .weight_bits = 3}, 2);
  b.program.outputs = {
      b.accumulators("last", QuantizedLinear{1, 5, 2, last.product}, {x}, {2}, last.scale)};
  return b.program;
}

Program with_features() {
  Program program = every_operation();
  program.values[0].features = {{-3.5f, 1e6f}, {0.125f, 3.0f}};
  return program;
}

/// A network made by prepare_ptq, calibrate and convert. It contains a depthwise convolution, a
/// table and an average. Its weights and activations have few bits.
IntegerModel converted() {
  manual_seed(3);
  Sequential net{Conv2d{1, 4, {.kernel = 3, .padding = 1, .bias = false}},
                 BatchNorm2d{4},
                 ReLU6{},
                 Conv2d{4, 4, {.kernel = 3, .stride = 2, .groups = 4}},
                 HardSwish{},
                 PReLU{4},
                 AvgPool2d{2},
                 Flatten{},
                 Linear{4, 3}};
  std::vector<float> pixels;
  Random random(1);
  for (int i = 0; i < 4 * 8 * 8; ++i) pixels.push_back(random.uniform(0.0f, 1.0f));
  const Tensor images = Tensor::from({4, 8, 8, 1}, pixels);
  quant::QConfig config = quant::QConfig::bits(3, 5);
  config.input_range = Range{0.0f, 1.0f};
  quant::prepare_ptq(net, images, config);
  quant::calibrate(net, images);
  return quant::convert(net, images);
}

void save_all(const std::string& folder) {
  save("every_operation", IntegerModel(every_operation()), folder);
  save("extremes", IntegerModel(extremes()), folder);
  save("dilated", IntegerModel(dilated()), folder);
  save("uneven", IntegerModel(uneven()), folder);
  save("pooled", IntegerModel(pooled()), folder);
  save("shared", IntegerModel(shared()), folder);
  save("binary", IntegerModel(binary(1)), folder);
  save("features", IntegerModel(with_features()), folder);
  save("mlp", IntegerModel(mlp()), folder);
  save("concat", IntegerModel(wide_concat(5)), folder);
  for (int bits = 1; bits <= 8; ++bits)
    save("convolutions" + std::to_string(bits), IntegerModel(convolutions(bits)), folder);
  for (uint64_t seed = 0; seed < 30; ++seed)
    save("random" + std::to_string(seed), IntegerModel(random_program(seed)), folder);
  save("converted", converted(), folder);
}

void check_files() {
  for (std::string path; std::getline(std::cin, path);) {
    try {
      IntegerModel::load(path);
      std::cout << "accepted\n";
    } catch (const Error& error) {
      std::string text = error.what();
      std::replace(text.begin(), text.end(), '\n', ' ');
      std::cout << "refused: " << text << '\n';
    }
  }
}

}  // namespace
}  // namespace quantrain::integer::test

int main(int argc, char** argv) try {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "write" && argc == 3) {
    quantrain::integer::test::save_all(argv[2]);
  } else if (what == "check" && argc == 2) {
    quantrain::integer::test::check_files();
  } else {
    std::cerr << "usage: save_networks write FOLDER | check\n";
    return 2;
  }
  return 0;
} catch (const quantrain::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
