#include <numeric>

#include "framework/core/error.hpp"
#include "tests/quant/import/imported.hpp"

namespace quantrain::tflite::test {
namespace {

const TensorSpec kX{.name = "x", .shape = {1, 4, 6, 3}, .scale = {0.05f}, .zero_point = {-20}};

TensorSpec like_x(std::vector<int32_t> shape) {
  return {.name = "y", .shape = std::move(shape), .scale = kX.scale, .zero_point = kX.zero_point};
}

std::vector<double> reals(const TensorSpec& t, const Codes& codes) {
  std::vector<double> values;
  for (const int code : codes) values.push_back(real(t, code));
  return values;
}

FlatWriter::Fields pool(int8_t padding, int stride, int width, int height, int8_t activation) {
  return {{0, static_cast<uint64_t>(padding)},
          {1, static_cast<uint64_t>(stride)},
          {2, static_cast<uint64_t>(stride)},
          {3, static_cast<uint64_t>(width)},
          {4, static_cast<uint64_t>(height)},
          {5, static_cast<uint64_t>(activation)}};
}

constexpr int32_t kAveragePool = 1, kMaxPool = 17;

}  // namespace

TEST_CASE("TFLite pools: the mean of the codes with ties away from 0, and the largest code",
          "[quant][tflite]") {
  for (const int8_t activation : {kNone, kRelu}) {
    for (const int32_t code : {kAveragePool, kMaxPool}) {
      // 4 rows by 3 at stride 2, padded by one row after the image; 6 columns by 2 have no padding.
      const FileSpec file = file_of({kX, like_x({1, 2, 3, 3})},
                                    {.code = code,
                                     .inputs = {0},
                                     .outputs = {1},
                                     .options = pool(kSame, 2, 2, 3, activation),
                                     .options_type = 5});
      const Codes x = random_codes(kX, 4);
      Codes expected;
      int64_t ties = 0;
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 3; ++j) {
          for (int c = 0; c < 3; ++c) {
            int total = 0, count = 0, largest = -128;
            for (int u = 2 * i; u < std::min(2 * i + 3, 4); ++u) {
              for (int v = 2 * j; v < 2 * j + 2; ++v, ++count) {
                const int q = x[static_cast<size_t>((u * 6 + v) * 3 + c)];
                total += q;
                largest = std::max(largest, q);
              }
            }
            ties += 2 * std::abs(total) % (2 * count) == count;
            const int mean = total > 0 ? (total + count / 2) / count : (total - count / 2) / count;
            const int q = code == kAveragePool ? mean : largest;
            expected.push_back(activation == kRelu ? std::max(q, -20) : q);
          }
        }
      }
      CHECK(ties > 0);
      CHECK(run(file, {x}) == expected);
    }
  }
}

TEST_CASE("TFLite pools and means that change the scale", "[quant][tflite]") {
  const TensorSpec y{.name = "y", .shape = {1, 2, 3, 3}, .scale = {0.02f}, .zero_point = {7}};
  const Codes x = random_codes(kX, 4);
  const FileSpec pooled = file_of({kX, y},
                                  {.code = kAveragePool,
                                   .inputs = {0},
                                   .outputs = {1},
                                   .options = pool(kValid, 2, 2, 2, kNone),
                                   .options_type = 5});
  std::vector<double> expected;
  const auto at = [&](int h, int w, int c) {
    return real(kX, x[static_cast<size_t>((h * 6 + w) * 3 + c)]);
  };
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int c = 0; c < 3; ++c) {
        expected.push_back((at(2 * i, 2 * j, c) + at(2 * i, 2 * j + 1, c) +
                            at(2 * i + 1, 2 * j, c) + at(2 * i + 1, 2 * j + 1, c)) /
                           4);
      }
    }
  }
  check_nearest(y, run(pooled, {x}), expected);

  const auto mean = [&](const std::vector<int32_t>& axes, std::vector<int32_t> shape) {
    TensorSpec out = y;
    out.shape = std::move(shape);
    FileSpec file = file_of({kX, out}, {.code = 40, .inputs = {0}, .outputs = {1}});
    file.operations[0].inputs.push_back(file.list(axes));
    return file;
  };
  const auto means = [&](const std::function<size_t(int h, int w, int c)>& place, size_t count) {
    std::vector<double> sums(count);
    for (int h = 0; h < 4; ++h) {
      for (int w = 0; w < 6; ++w) {
        for (int c = 0; c < 3; ++c) sums[place(h, w, c)] += at(h, w, c);
      }
    }
    for (double& sum : sums) sum *= static_cast<double>(count) / 72.0;
    return sums;
  };
  using Place = std::function<size_t(int, int, int)>;
  const Place of_channel = [](int, int, int c) { return static_cast<size_t>(c); };
  const Place of_row = [](int h, int, int) { return static_cast<size_t>(h); };
  const Place of_row_and_channel = [](int h, int, int c) { return static_cast<size_t>(h * 3 + c); };
  check_nearest(y, run(mean({1, 2}, {1, 3}), {x}), means(of_channel, 3));
  check_nearest(y, run(mean({2, -3}, {1, 1, 1, 3}), {x}), means(of_channel, 3));
  check_nearest(y, run(mean({0, 2, 3}, {4}), {x}), means(of_row, 4));
  check_nearest(y, run(mean({2}, {1, 4, 3}), {x}), means(of_row_and_channel, 12));
  QUANTRAIN_CHECK_ERROR(import(mean({1, 3}, {1, 6})),
                        GraphError,
                        "1 x MEAN over axes with another axis between them");
}

TEST_CASE("TFLite functions of one code", "[quant][tflite]") {
  const TensorSpec x{.name = "x", .shape = {1, 256}, .scale = {0.06f}, .zero_point = {10}};
  Codes all(256);
  std::iota(all.begin(), all.end(), -128);
  struct Case {
    int32_t code;
    std::function<double(double)> f;
    FlatWriter::Fields options{};
    int8_t options_type = 0;
  };
  const Case cases[] = {
      {14, [](double v) { return 1 / (1 + std::exp(-v)); }},
      {28, [](double v) { return std::tanh(v); }},
      {117, [](double v) { return v * std::clamp(v + 3, 0.0, 6.0) / 6; }},
      {98, [](double v) { return v > 0 ? v : double{0.3f} * v; }, {{0, float_bits(0.3f)}}, 75},
      {19, [](double v) { return std::max(v, 0.0); }},
      {20, [](double v) { return std::clamp(v, -1.0, 1.0); }},
      {21, [](double v) { return std::clamp(v, 0.0, 6.0); }},
      {152, [](double v) { return std::clamp(v, 0.0, 1.0); }},
      {114, [](double v) { return v; }},
  };
  for (const Case& c : cases) {
    for (const int8_t type : {kInt8, kUint8}) {
      CAPTURE(c.code, int{type});
      const TensorSpec y{.name = "y",
                         .shape = {1, 256},
                         .type = type,
                         .scale = {1.0f / 25},
                         .zero_point = {type == kInt8 ? -28 : 100}};
      const FileSpec file = file_of({x, y},
                                    {.code = c.code,
                                     .inputs = {0},
                                     .outputs = {1},
                                     .options = c.options,
                                     .options_type = c.options_type});
      std::vector<double> expected = reals(x, all);
      for (double& v : expected) v = c.f(v);
      check_nearest(y, run(file, {all}), expected);
    }
  }
}

TEST_CASE("TFLite ADD and MUL: of two values, a factor for each channel, and constants",
          "[quant][tflite]") {
  const TensorSpec b{.name = "b", .shape = {1, 4, 6, 3}, .scale = {0.03f}, .zero_point = {40}};
  const TensorSpec y{.name = "y", .shape = {1, 4, 6, 3}, .scale = {0.11f}, .zero_point = {3}};
  TensorSpec of_channels = b;
  of_channels.shape = {1, 1, 1, 3};
  TensorSpec constant = of_channels;
  constant.shape = {3};
  constant.data = {100, 200, 30};  // int8 codes 100, -56 and 30
  TensorSpec number = b;
  number.shape = {};
  number.data = {90};
  const Codes codes = random_codes(kX, 1), others = random_codes(b, 2);
  for (const int32_t code : {0, 18}) {
    for (const TensorSpec& second : {b, of_channels, constant, number}) {
      const bool is_constant = !second.data.empty();
      if (code == 0 && second.shape == of_channels.shape) continue;
      for (const bool swapped : {false, true}) {
        FileSpec file = file_of({kX, second, y},
                                {.code = code,
                                 .inputs = swapped ? std::vector{1, 0} : std::vector{0, 1},
                                 .outputs = {2},
                                 .options = {{0, uint64_t{kRelu}}},
                                 .options_type = code == 0 ? int8_t{11} : int8_t{21}});
        if (!is_constant) file.inputs = {0, 1};
        Codes given(others.begin(), others.begin() + size_of(second));
        if (is_constant) {
          given.clear();
          for (const uint8_t byte : second.data) given.push_back(static_cast<int8_t>(byte));
        }
        std::vector<double> expected;
        for (size_t i = 0; i < codes.size(); ++i) {
          const double a = real(kX, codes[i]), c = real(second, given[i % given.size()]);
          expected.push_back(code == 0 ? a + c : a * c);
        }
        std::vector<Codes> inputs{codes};
        if (!is_constant) inputs.push_back(given);
        check_nearest(y, run(file, inputs), expected, 0.0);
      }
    }
  }
}

TEST_CASE("TFLite CONCATENATION and SOFTMAX", "[quant][tflite]") {
  const TensorSpec b{.name = "b", .shape = {1, 4, 2, 3}, .scale = {0.03f}, .zero_point = {40}};
  const TensorSpec y{.name = "y", .shape = {1, 4, 8, 3}, .scale = {0.06f}, .zero_point = {3}};
  FileSpec file = file_of({kX, b, y},
                          {.code = 2,
                           .inputs = {0, 1},
                           .outputs = {2},
                           .options = {{0, static_cast<uint32_t>(-2)}, {1, 0}},
                           .options_type = 10});
  file.inputs = {0, 1};
  const Codes codes = random_codes(kX, 1), others = random_codes(b, 2);
  std::vector<double> expected;
  for (size_t row = 0; row < 4; ++row) {
    for (size_t i = 0; i < 18; ++i) expected.push_back(real(kX, codes[row * 18 + i]));
    for (size_t i = 0; i < 6; ++i) expected.push_back(real(b, others[row * 6 + i]));
  }
  check_nearest(y, run(file, {codes, others}), expected);

  TensorSpec shares = like_x(kX.shape);
  shares.scale = {1.0f / 256};
  shares.zero_point = {-128};
  const FileSpec softmax = file_of({kX, shares},
                                   {.code = 25,
                                    .inputs = {0},
                                    .outputs = {1},
                                    .options = {{0, float_bits(0.5f)}},
                                    .options_type = 9});
  expected.clear();
  for (size_t row = 0; row < 24; ++row) {
    double sum = 0.0;
    for (size_t i = 0; i < 3; ++i) sum += std::exp(0.5 * real(kX, codes[row * 3 + i]));
    for (size_t i = 0; i < 3; ++i)
      expected.push_back(std::exp(0.5 * real(kX, codes[row * 3 + i])) / sum);
  }
  check_nearest(shares, run(softmax, {codes}), expected);
}

TEST_CASE("TFLite moves", "[quant][tflite]") {
  const Codes x = random_codes(kX, 3);
  const auto at = [&](int h, int w, int c) { return x[static_cast<size_t>((h * 6 + w) * 3 + c)]; };
  /// The codes of an operation whose further inputs are lists; `from` gives the code of a place.
  const auto check = [&](int32_t code,
                         const std::vector<std::vector<int32_t>>& lists,
                         const std::vector<int32_t>& shape,
                         const std::function<int(int, int, int)>& from,
                         const FlatWriter::Fields& options = {},
                         int8_t options_type = 0) {
    CAPTURE(code);
    FileSpec file = file_of({kX, like_x(shape)},
                            {.code = code,
                             .inputs = {0},
                             .outputs = {1},
                             .options = options,
                             .options_type = options_type});
    for (const auto& list : lists) file.operations[0].inputs.push_back(file.list(list));
    if (code == 34) file.tensors.back().shape = {4, 2};
    Codes expected;
    for (int i = 0; i < shape[1]; ++i) {
      for (int j = 0; j < shape[2]; ++j) {
        for (int k = 0; k < shape[3]; ++k) expected.push_back(from(i, j, k));
      }
    }
    CHECK(run(file, {x}) == expected);
  };
  check(34, {{0, 0, 1, 0, 0, 2, 0, 0}}, {1, 5, 8, 3}, [&](int i, int j, int k) {
    return i < 1 || j >= 6 ? -20 : at(i - 1, j, k);
  });
  // Rows 3 and 1, columns from the second last on, channel 2; in masks, bit k is axis k.
  check(
      45,
      {{0, 99, -2, 2}, {1, -9, 0, 0}, {1, -2, 1, 1}},
      {1, 2, 2, 1},
      [&](int i, int j, int) { return at(3 - 2 * i, 4 + j, 2); },
      {{0, 1}, {1, 5}, {2, 0}, {3, 0}, {4, 8}},
      32);
  check(39, {{0, 2, 1, 3}}, {1, 6, 4, 3}, [&](int i, int j, int k) { return at(j, i, k); });
  check(39, {{0, 3, 1, 2}}, {1, 3, 4, 6}, [&](int i, int j, int k) { return at(j, k, i); });
}

TEST_CASE("TFLite reshapes keep the codes", "[quant][tflite]") {
  const Codes x = random_codes(kX, 3);
  for (const int32_t code : {22, 43, 70}) {
    const FileSpec file =
        file_of({kX, like_x({1, 24, 3})}, {.code = code, .inputs = {0}, .outputs = {1}});
    CHECK(run(file, {x}) == x);
    CHECK(import(file).program().value(1).shape == Shape{24, 3});
  }
}

TEST_CASE("TFLite RESIZE_NEAREST_NEIGHBOR by any factor", "[quant][tflite]") {
  const Codes x = random_codes(kX, 3);
  // Places of 4 rows in 8, 3 and 6, by TFLite's formula, computed by hand.
  struct Case {
    int32_t rows;
    bool aligned, centers;
    std::vector<int> from;
  };
  const Case cases[] = {{8, false, false, {0, 0, 1, 1, 2, 2, 3, 3}},
                        {3, false, false, {0, 1, 2}},
                        {3, false, true, {0, 2, 3}},
                        {7, true, false, {0, 1, 1, 2, 2, 3, 3}},
                        {6, false, true, {0, 1, 1, 2, 3, 3}}};
  for (const Case& c : cases) {
    CAPTURE(c.rows, c.aligned, c.centers);
    FileSpec file = file_of({kX, like_x({1, c.rows, 6, 3})},
                            {.code = 97,
                             .inputs = {0},
                             .outputs = {1},
                             .options = {{0, uint64_t{c.aligned}}, {1, uint64_t{c.centers}}},
                             .options_type = 74});
    file.operations[0].inputs.push_back(file.list({c.rows, 6}));
    Codes expected;
    for (const int row : c.from)
      expected.insert(expected.end(), x.begin() + row * 18, x.begin() + (row + 1) * 18);
    CHECK(run(file, {x}) == expected);
  }
}

TEST_CASE("floats at the ends of a TFLite network are codes of the program", "[quant][tflite]") {
  FileSpec file;
  const int32_t input = file.add({.name = "pixels", .shape = {1, 5}, .type = kFloat32});
  const int32_t x = file.add({.name = "x", .shape = {1, 5}, .scale = {0.5f}, .zero_point = {-100}});
  const int32_t y = file.add({.name = "y", .shape = {1, 5}, .scale = {0.25f}, .zero_point = {20}});
  const int32_t output = file.add({.name = "out;more", .shape = {1, 5}, .type = kFloat32});
  file.operations = {{.code = 114, .inputs = {input}, .outputs = {x}},
                     {.code = 19, .inputs = {x}, .outputs = {y}},
                     {.code = 6, .inputs = {y}, .outputs = {output}}};
  file.inputs = {input};
  file.outputs = {output};
  const IntegerModel model = import(file);
  CHECK(model.program().steps.size() == 1);
  CHECK(model.input_shape() == Shape{5});
  const QParams expected{{.bits = 8, .is_signed = true}, -1, {0.5f}, {-100}};
  CHECK(model.input_params() == expected);
  CHECK(model.program().value(model.program().inputs[0]).name == "pixels");
  CHECK(model.program().value(model.program().outputs[0]).name == "y");
  const std::vector<float> given{-3.0f, 0.0f, 1.5f, 4.25f, 9.0f};
  std::vector<float> real(5);
  model.run(given, std::span<float>(real));
  CHECK(real == std::vector<float>{0.0f, 0.0f, 1.5f, 4.0f, 9.0f});  // 4.25 is a tie: to even
  std::vector<int32_t> best(1);
  model.classify(given, best);
  CHECK(best[0] == 4);
}

}  // namespace quantrain::tflite::test
