#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/core/random.hpp"
#include "tests/quant/import/tflite_writer.hpp"

// Small .tflite files that have every operation. Fuzzers begin with them.
namespace quantrain::tflite::test {

/// Random int8 weights or constants, as bytes.
inline std::vector<uint8_t> random_constant(int64_t size, uint64_t seed) {
  Random random(seed);
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < size; ++i)
    bytes.push_back(static_cast<uint8_t>(static_cast<int8_t>(random.below(255) - 127)));
  return bytes;
}

/// A convolution, a pool, a linear layer and a softmax.
inline FileSpec small_network() {
  FileSpec f;
  const auto value = [&](const char* name, std::vector<int32_t> shape) {
    return f.add({.name = name, .shape = std::move(shape), .scale = {0.1f}, .zero_point = {-5}});
  };
  const int32_t x = value("x", {1, 6, 6, 2});
  const int32_t w = f.add({.name = "w",
                           .shape = {4, 3, 3, 2},
                           .scale = {0.01f, 0.02f, 0.01f, 0.03f},
                           .zero_point = {0, 0, 0, 0},
                           .data = random_constant(72, 1)});
  const int32_t b = f.add({.name = "b",
                           .shape = {4},
                           .type = kInt32,
                           .scale = {0.001f},
                           .zero_point = {0},
                           .data = bytes_of(std::vector<int32_t>{10, -20, 30, 5})});
  const int32_t conv = value("conv", {1, 3, 3, 4});
  const int32_t mean = value("mean", {1, 1, 1, 4});
  const int32_t flat = value("flat", {1, 4});
  const int32_t v = f.add({.name = "v",
                           .shape = {3, 4},
                           .scale = {0.02f},
                           .zero_point = {0},
                           .data = random_constant(12, 2)});
  const int32_t y = value("y", {1, 3});
  const int32_t s =
      f.add({.name = "s", .shape = {1, 3}, .scale = {1.0f / 256}, .zero_point = {-128}});
  const int32_t flat_shape = f.list({1, 4});
  f.operations = {
      {.code = 3,
       .inputs = {x, w, b},
       .outputs = {conv},
       .options = {{0, 0}, {1, 2}, {2, 2}, {3, 1}},
       .options_type = 1},
      {.code = 1,
       .inputs = {conv},
       .outputs = {mean},
       .options = {{0, 1}, {1, 3}, {2, 3}, {3, 3}, {4, 3}},
       .options_type = 5},
      {.code = 22, .inputs = {mean, flat_shape}, .outputs = {flat}},
      {.code = 9, .inputs = {flat, v, -1}, .outputs = {y}, .options = {{0, 0}}, .options_type = 8},
      {.code = 25,
       .inputs = {y},
       .outputs = {s},
       .options = {{0, float_bits(1.0f)}},
       .options_type = 9}};
  f.inputs = {x};
  f.outputs = {s};
  return f;
}

/// A file for each operation, by its name.
inline std::vector<std::pair<std::string, FileSpec>> sample_files() {
  std::vector<std::pair<std::string, FileSpec>> files{{"network", small_network()}};
  const std::vector<int32_t> image{1, 4, 6, 3};
  const auto value = [](std::vector<int32_t> shape, float scale, int64_t zero_point) {
    return TensorSpec{.shape = std::move(shape), .scale = {scale}, .zero_point = {zero_point}};
  };
  const TensorSpec x = value(image, 0.0517f, -20);
  /// Inputs that are lists or constants come after x; the output comes last.
  const auto add = [&](const std::string& name,
                       int32_t code,
                       std::vector<TensorSpec> others,
                       TensorSpec y,
                       FlatWriter::Fields options = {},
                       int8_t options_type = 0) {
    FileSpec f;
    f.inputs = {f.add(x)};
    OperationSpec op{.code = code,
                     .inputs = {0},
                     .outputs = {},
                     .options = std::move(options),
                     .options_type = options_type};
    for (TensorSpec& other : others) {
      const bool is_value = other.data.empty();
      op.inputs.push_back(f.add(std::move(other)));
      if (is_value) f.inputs.push_back(op.inputs.back());
    }
    op.outputs = f.outputs = {f.add(std::move(y))};
    f.operations = {op};
    files.emplace_back(name, std::move(f));
  };
  const auto list = [](std::vector<int32_t> shape, const std::vector<int32_t>& values) {
    return TensorSpec{.shape = std::move(shape), .type = kInt32, .data = bytes_of(values)};
  };
  const auto weights = [](std::vector<int32_t> shape, int64_t count, int32_t axis) {
    TensorSpec w{.shape = std::move(shape), .data = random_constant(count, 1), .axis = axis};
    for (int32_t o = 0; o < w.shape[static_cast<size_t>(axis)]; ++o) {
      w.scale.push_back(0.0103f + 0.0021f * static_cast<float>(o));
      w.zero_point.push_back(0);
    }
    return w;
  };
  const FlatWriter::Fields window{{0, 0}, {1, 2}, {2, 2}, {3, 2}, {4, 3}, {5, 0}};
  add("average_pool", 1, {}, value({1, 2, 3, 3}, 0.0517f, -20), window, 5);
  add("max_pool", 17, {}, value({1, 2, 3, 3}, 0.0517f, -20), window, 5);
  add("mean", 40, {list({2}, {1, 2})}, value({1, 3}, 0.0313f, 5), {{0, 0}}, 27);
  add("mean_of_codes", 40, {list({2}, {1, 2})}, value({1, 3}, 0.0517f, -20), {{0, 0}}, 27);
  add("depthwise",
      4,
      {weights({1, 3, 3, 6}, 54, 3), list({6}, {5, -9, 100, 0, 7, 12})},
      value({1, 2, 3, 6}, 0.2117f, 3),
      {{0, 0}, {1, 2}, {2, 2}, {3, 2}, {4, 3}, {5, 1}, {6, 1}},
      2);
  add("dilated",
      3,
      {weights({4, 2, 2, 3}, 48, 0), list({4}, {5, -9, 100, 0})},
      value({1, 2, 4, 4}, 0.2117f, 3),
      {{0, 1}, {1, 1}, {2, 1}, {3, 0}, {4, 2}, {5, 2}},
      1);
  TensorSpec nibbles = weights({5, 18}, 45, 0);
  nibbles.type = kInt4;
  add("linear4", 9, {nibbles}, value({4, 5}, 0.3129f, 3), {{0, 1}}, 8);
  for (const auto& [name, code] : {std::pair{"add", 0}, {"mul", 18}}) {
    const int8_t type = code == 0 ? int8_t{11} : int8_t{21};
    TensorSpec constant = value({3}, 0.0313f, 40);
    constant.data = {100, 200, 30};
    add(name, code, {value(image, 0.0313f, 40)}, value(image, 0.1109f, 3), {{0, 0}}, type);
    add(std::string(name) + "_constant",
        code,
        {constant},
        value(image, 0.1109f, 3),
        {{0, 1}},
        type);
  }
  add("scale_channels",
      18,
      {value({1, 1, 1, 3}, 0.0313f, 40)},
      value(image, 0.1109f, 3),
      {{0, 0}},
      21);
  add("concat",
      2,
      {value({1, 4, 2, 3}, 0.0313f, 40)},
      value({1, 4, 8, 3}, 0.0611f, 3),
      {{0, 2}, {1, 0}},
      10);
  add("softmax", 25, {}, value(image, 1.0f / 256, -128), {{0, float_bits(1.0f)}}, 9);
  for (const auto& [name, code] : {std::pair{"logistic", 14}, {"tanh", 28}, {"hard_swish", 117}})
    add(name, code, {}, value(image, code == 14 ? 1.0f / 256 : 1.0f / 128, code == 14 ? -128 : 0));
  add("leaky_relu", 98, {}, value(image, 0.0611f, 2), {{0, float_bits(0.3f)}}, 75);
  for (const auto& [name, code] : {std::pair{"relu", 19}, {"relu_n1_to_1", 20}, {"relu6", 21}})
    add(name, code, {}, value(image, 0.0517f, -20));
  add("quantize", 114, {}, value(image, 0.0733f, 9));
  add("pad", 34, {list({4, 2}, {0, 0, 1, 0, 0, 2, 0, 0})}, value({1, 5, 8, 3}, 0.0517f, -20));
  add("slice",
      45,
      {list({4}, {0, 3, -2, 0}), list({4}, {1, -9, 0, 3}), list({4}, {1, -2, 1, 1})},
      value({1, 2, 2, 3}, 0.0517f, -20),
      {{0, 1}, {1, 5}, {2, 0}, {3, 0}, {4, 0}},
      32);
  add("transpose", 39, {list({4}, {0, 2, 1, 3})}, value({1, 6, 4, 3}, 0.0517f, -20));
  add("resize", 97, {list({2}, {8, 12})}, value({1, 8, 12, 3}, 0.0517f, -20), {{0, 0}, {1, 1}}, 74);
  add("reshape", 22, {list({2}, {1, 72})}, value({1, 72}, 0.0517f, -20));
  FileSpec ends = small_network();
  ends.inputs = {ends.add({.name = "floats", .shape = {1, 6, 6, 2}, .type = kFloat32})};
  ends.outputs = {ends.add({.name = "shares", .shape = {1, 3}, .type = kFloat32})};
  ends.operations.insert(ends.operations.begin(),
                         {.code = 114, .inputs = ends.inputs, .outputs = {0}});
  ends.operations.push_back({.code = 6, .inputs = {8}, .outputs = ends.outputs});
  files.emplace_back("floats_at_the_ends", std::move(ends));
  return files;
}

}  // namespace quantrain::tflite::test
