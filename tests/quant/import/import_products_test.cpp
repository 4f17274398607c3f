#include "framework/core/error.hpp"
#include "tests/quant/import/imported.hpp"

namespace quantrain::tflite::test {
namespace {

struct Window {
  int stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int8_t padding = kSame, activation = kNone;
};

constexpr int32_t kConv = 3, kDepthwise = 4, kFullyConnected = 9, kPad = 34;

FlatWriter::Fields window_options(const Window& w, bool depthwise) {
  const auto number = [](int v) { return static_cast<uint64_t>(v); };
  const int at = depthwise ? 4 : 3;
  return {{0, number(w.padding)},
          {1, number(w.stride_w)},
          {2, number(w.stride_h)},
          {at, number(w.activation)},
          {at + 1, number(w.dilation_w)},
          {at + 2, number(w.dilation_h)}};
}

struct Sizes {
  int outputs, before;
};

/// TFLite's padding along an axis: ComputeOutSize and ComputePaddingWithOffset.
Sizes axis(int size, int kernel, int stride, int dilation, int8_t padding) {
  const int window = (kernel - 1) * dilation + 1;
  if (padding == kValid) return {(size - window) / stride + 1, 0};
  const int outputs = (size + stride - 1) / stride;
  return {outputs, std::max((outputs - 1) * stride + window - size, 0) / 2};
}

/// The convolution of t[0] with weights t[1] and biases t[2] in real numbers. Depthwise weights are
/// [1, KH, KW, O].
std::vector<double> convolved(const std::vector<TensorSpec>& t,
                              const Window& w,
                              const Codes& x,
                              bool depthwise,
                              int top = 0,
                              int left = 0) {
  const auto& image = t[0].shape;
  const auto& kernel = t[1].shape;
  const int h = image[1], v = image[2], c = image[3], kh = kernel[1], kw = kernel[2];
  const int o = depthwise ? kernel[3] : kernel[0];
  const int group_c = depthwise ? 1 : kernel[3], group_o = o / (c / group_c);
  const Sizes rows = axis(h, kh, w.stride_h, w.dilation_h, w.padding);
  const Sizes columns = axis(v, kw, w.stride_w, w.dilation_w, w.padding);
  const int oh = t[3].shape[1], ow = t[3].shape[2];
  std::vector<double> y;
  for (int i = 0; i < oh; ++i) {
    for (int j = 0; j < ow; ++j) {
      for (int p = 0; p < o; ++p) {
        const double scale = t[1].scale[t[1].scale.size() == 1 ? 0 : static_cast<size_t>(p)];
        int32_t bias = 0;
        std::memcpy(&bias, t[2].data.data() + 4 * p, 4);
        double sum = bias * scale * double{t[0].scale[0]};
        for (int u = 0; u < kh; ++u) {
          for (int q = 0; q < kw; ++q) {
            const int row = i * w.stride_h - rows.before - top + u * w.dilation_h;
            const int column = j * w.stride_w - columns.before - left + q * w.dilation_w;
            if (row < 0 || row >= h || column < 0 || column >= v) continue;
            for (int k = 0; k < group_c; ++k) {
              const int at =
                  depthwise ? (u * kw + q) * o + p : ((p * kh + u) * kw + q) * group_c + k;
              const uint8_t byte = t[1].data[static_cast<size_t>(at)];
              const int weight = t[1].type == kUint8 ? byte : static_cast<int8_t>(byte);
              const int zero = static_cast<int>(t[1].zero_point.empty() ? 0 : t[1].zero_point[0]);
              const int channel = p / group_o * group_c + k;
              sum += (weight - zero) * scale *
                     real(t[0], x[static_cast<size_t>((row * v + column) * c + channel)]);
            }
          }
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

std::vector<uint8_t> random_biases(int count) {
  Random random(5);
  std::vector<int32_t> bias;
  for (int i = 0; i < count; ++i) bias.push_back(static_cast<int32_t>(random.below(4001)) - 2000);
  return bytes_of(bias);
}

std::vector<float> scales(int count) {
  std::vector<float> result;
  for (int i = 0; i < count; ++i) result.push_back(0.002f + 0.0005f * static_cast<float>(i));
  return result;
}

/// Input, weights, biases and output of a convolution.
std::vector<TensorSpec> tensors(const std::vector<int32_t>& x,
                                const std::vector<int32_t>& weights,
                                const Window& w,
                                bool depthwise) {
  const int o = depthwise ? weights[3] : weights[0];
  const int32_t oh = axis(x[1], weights[1], w.stride_h, w.dilation_h, w.padding).outputs;
  const int32_t ow = axis(x[2], weights[2], w.stride_w, w.dilation_w, w.padding).outputs;
  int64_t count = 1;
  for (const int32_t extent : weights) count *= extent;
  return {{.name = "x", .shape = x, .scale = {0.03f}, .zero_point = {-13}},
          {.name = "w",
           .shape = weights,
           .scale = scales(o),
           .zero_point = std::vector<int64_t>(static_cast<size_t>(o)),
           .data = random_constant(count, 3),
           .axis = depthwise ? 3 : 0},
          {.name = "b", .shape = {o}, .type = kInt32, .data = random_biases(o)},
          {.name = "y", .shape = {1, oh, ow, o}, .scale = {0.15f}, .zero_point = {9}}};
}

void check(const std::vector<TensorSpec>& t, const Window& w, bool depthwise) {
  const FileSpec file = file_of(t,
                                {.code = depthwise ? kDepthwise : kConv,
                                 .inputs = {0, 1, 2},
                                 .outputs = {3},
                                 .options = window_options(w, depthwise),
                                 .options_type = depthwise ? int8_t{2} : int8_t{1}});
  const Codes x = random_codes(t[0], 7);
  check_nearest(t[3],
                run(file, {x}),
                convolved(t, w, x, depthwise),
                w.activation == kNone        ? -1e30
                : w.activation == kReluN1To1 ? -1.0
                                             : 0.0,
                w.activation == kRelu6       ? 6.0
                : w.activation == kReluN1To1 ? 1.0
                                             : 1e30);
}

}  // namespace

TEST_CASE("TFLite convolutions with SAME padding pad the odd row after the image",
          "[quant][tflite]") {
  // 6 rows at stride 2 with 3 taps: one row of padding, after the image. 7 columns: one column on
  // each side.
  for (const auto& [h, w] : {std::pair{6, 7}, {7, 6}, {8, 8}, {1, 5}}) {
    for (const int stride : {1, 2, 3}) {
      for (const int8_t activation : {kNone, kRelu, kRelu6, kReluN1To1}) {
        CAPTURE(h, w, stride, int{activation});
        const Window window{.stride_h = stride, .stride_w = 2, .activation = activation};
        check(tensors({1, h, w, 3}, {5, 3, 3, 3}, window, false), window, false);
        check(tensors({1, h, w, 3}, {1, 3, 2, 3}, window, true), window, true);
      }
    }
  }
}

TEST_CASE("TFLite convolutions with groups, dilation, any depth multiplier and one scale",
          "[quant][tflite]") {
  Window window{.dilation_h = 2, .dilation_w = 3, .padding = kValid};
  check(tensors({1, 8, 9, 4}, {6, 3, 2, 2}, window, false), window, false);  // two groups
  check(tensors({1, 8, 9, 4}, {1, 3, 2, 12}, window, true), window, true);   // multiplier 3
  window.padding = kSame;
  check(tensors({1, 8, 9, 4}, {1, 2, 4, 8}, window, true), window, true);
  std::vector<TensorSpec> t = tensors({1, 5, 4, 1}, {4, 2, 2, 1}, {}, false);
  t[1].scale = {0.004f};
  t[1].zero_point = {0};
  check(t, {}, false);
  check(tensors({1, 5, 4, 1}, {1, 2, 2, 4}, {}, true), {}, true);  // of one channel
  // Old files: unsigned codes, and weights with a zero point.
  for (TensorSpec& tensor : t) tensor.type = tensor.type == kInt8 ? kUint8 : tensor.type;
  t[0].zero_point = {110};
  t[1].zero_point = {120};
  t[3].zero_point = {100};
  for (uint8_t& weight : t[1].data) weight = static_cast<uint8_t>(weight / 2 + 40);
  check(t, {}, false);
}

TEST_CASE("a PAD before a TFLite convolution becomes the convolution's own padding",
          "[quant][tflite]") {
  for (const bool depthwise : {false, true}) {
    for (const std::vector<int32_t>& pads :
         std::vector<std::vector<int32_t>>{{0, 0, 0, 1, 0, 1, 0, 0}, {0, 0, 2, 0, 1, 3, 0, 0}}) {
      const Window window{.stride_h = 2, .stride_w = 2, .padding = kValid};
      const int32_t h = 6 + pads[2] + pads[3], w = 5 + pads[4] + pads[5];
      std::vector<TensorSpec> t =
          tensors({1, h, w, 3},
                  depthwise ? std::vector{1, 3, 3, 3} : std::vector{4, 3, 3, 3},
                  window,
                  depthwise);
      t[0].shape = {1, 6, 5, 3};
      FileSpec file;
      for (const TensorSpec& tensor : t) file.add(tensor);
      const int32_t padded = file.add({.name = "padded",
                                       .shape = {1, h, w, 3},
                                       .scale = t[0].scale,
                                       .zero_point = t[0].zero_point});
      const int32_t list = file.add({.shape = {4, 2}, .type = kInt32, .data = bytes_of(pads)});
      file.operations = {{.code = kPad, .inputs = {0, list}, .outputs = {padded}},
                         {.code = depthwise ? kDepthwise : kConv,
                          .inputs = {padded, 1, 2},
                          .outputs = {3},
                          .options = window_options(window, depthwise),
                          .options_type = depthwise ? int8_t{2} : int8_t{1}}};
      file.inputs = {0};
      file.outputs = {3};
      const Codes x = random_codes(t[0], 7);
      CHECK(import(file).program().steps.size() == 1);
      check_nearest(t[3], run(file, {x}), convolved(t, window, x, depthwise, pads[2], pads[4]));
      // Somebody else reads the padded image: both steps stay.
      FileSpec both = file;
      both.outputs = {3, padded};
      CHECK(import(both).program().steps.size() == 2);
      CHECK(run(both, {x}) == run(file, {x}));
    }
  }
}

TEST_CASE("TFLite linear layers with 8-bit and 4-bit weights", "[quant][tflite]") {
  for (const int8_t type : {kInt8, kInt4}) {
    for (const bool bias : {true, false}) {
      // Two rows of 7 inputs. 35 weights of 4 bits take 18 bytes.
      std::vector<TensorSpec> t{
          {.name = "x", .shape = {1, 2, 7}, .scale = {0.05f}, .zero_point = {20}},
          {.name = "w", .shape = {5, 7}, .type = type, .scale = {0.01f}, .zero_point = {0}},
          {.name = "b", .shape = {5}, .type = kInt32, .data = random_biases(5)},
          {.name = "y", .shape = {1, 2, 5}, .scale = {0.06f}, .zero_point = {-30}}};
      Random random(9);
      std::vector<int> weights;
      for (int i = 0; i < 35; ++i)
        weights.push_back(static_cast<int>(random.below(type == kInt4 ? 16 : 255)) -
                          (type == kInt4 ? 8 : 127));
      if (type == kInt4) t[1].data.resize(18);
      for (size_t i = 0; i < 35; ++i) {
        if (type == kInt8) t[1].data.push_back(static_cast<uint8_t>(weights[i]));
        if (type == kInt4)
          t[1].data[i / 2] |= static_cast<uint8_t>((weights[i] & 15) << (i % 2 * 4));
      }
      const FileSpec file = file_of(t,
                                    {.code = kFullyConnected,
                                     .inputs = {0, 1, bias ? 2 : -1},
                                     .outputs = {3},
                                     .options = {{0, uint64_t{kNone}}},
                                     .options_type = 8});
      const integer::Program program = import(file).program();
      const integer::QuantizedProduct* const product = integer::product(program.steps[0].operation);
      REQUIRE(product != nullptr);
      CHECK(product->weight.bits() == (type == kInt4 ? 4 : 8));
      CHECK(program.steps[0].origin.weight_scale == std::vector<float>{0.01f});
      const Codes x = random_codes(t[0], 2);
      std::vector<double> expected;
      for (size_t row = 0; row < 2; ++row) {
        for (size_t o = 0; o < 5; ++o) {
          int32_t b = 0;
          std::memcpy(&b, t[2].data.data() + 4 * o, 4);
          double sum = bias ? b * double{0.05f} * double{0.01f} : 0.0;
          for (size_t i = 0; i < 7; ++i)
            sum += weights[o * 7 + i] * double{0.01f} * real(t[0], x[row * 7 + i]);
          expected.push_back(sum);
        }
      }
      check_nearest(t[3], run(file, {x}), expected);
    }
  }
}

}  // namespace quantrain::tflite::test
