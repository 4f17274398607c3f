#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/core/buffer.hpp"
#include "framework/core/random.hpp"
#include "framework/integer/memory_plan.hpp"
#include "framework/integer/program.hpp"

// Integer operations and programs for tests.
namespace quantrain::integer::test {

inline const QParams kX{{.bits = 8}, -1, {0.02f}, {7}};
inline const QParams kSigned{{.bits = 6, .is_signed = true}, -1, {0.05f}, {-3}};
inline const QParams kY{{.bits = 4}, -1, {0.3f}, {5}};
inline const QParams kBit{{.bits = 1}, -1, {0.5f}, {0}};

inline std::vector<uint8_t> random_bytes(int64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(n));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
  return bytes;
}

/// Random stored codes of the type.
inline std::vector<uint8_t> random_codes(int64_t n, const QParams& params, uint64_t seed) {
  Random random(seed);
  const std::vector<int32_t> all = stored_codes(params);
  std::vector<uint8_t> codes(static_cast<size_t>(n));
  for (uint8_t& code : codes)
    code = static_cast<uint8_t>(
        all[static_cast<size_t>(random.below(static_cast<int64_t>(all.size())))]);
  return codes;
}

/// Changes a copy of the numbers, and stores it.
template <class Change>
void edit(SharedArray<int32_t>& numbers, const Change& change) {
  std::vector<int32_t> copy = numbers.values();
  change(copy);
  numbers = std::move(copy);
}

struct ProductSpec {
  int64_t outputs;
  int64_t length;
  QParams x;
  int weight_bits = 8;
  bool bias = true;
};

/// A product with random weights, and a scale for each channel.
struct RandomProduct {
  QuantizedProduct product;
  std::vector<double> scale;  ///< for each channel, the real value of one unit of the accumulator

  RandomProduct(const ProductSpec& spec, uint64_t seed) {
    Random random(seed);
    const int32_t most = (1 << (spec.weight_bits - 1)) - 1;
    std::vector<int8_t> weight;
    for (int64_t i = 0; i < spec.outputs * spec.length; ++i) {
      weight.push_back(static_cast<int8_t>(
          spec.weight_bits == 1 ? 2 * random.below(2) - 1 : random.below(2 * most + 2) - most - 1));
    }
    std::vector<int32_t> bias;
    for (int64_t o = 0; o < spec.outputs; ++o) {
      scale.push_back(double{spec.x.scale[0]} * double{random.uniform(0.001f, 0.01f)});
      bias.push_back(static_cast<int32_t>(random.below(20001) - 10000));
    }
    product.zero_x = stored_zero_point(spec.x);
    product.weight = {std::move(weight), spec.weight_bits};
    if (spec.bias) product.bias = std::move(bias);
  }

  QuantizedProduct behind(const QParams& y, Activation activation = Activation::kNone) const {
    QuantizedProduct complete = product;
    complete.output = requantization(scale, y, activation);
    return complete;
  }
};

inline kernels::Conv2dShape pool_shape(
    int64_t h, int64_t w, int64_t c, int64_t kernel, int64_t stride, int64_t pad) {
  return {.n = 1,
          .h = h,
          .w = w,
          .c = c,
          .o = c,
          .kh = kernel,
          .kw = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad,
          .groups = c};
}

/// Builds programs value by value.
class Builder {
 public:
  int input(const Shape& shape, const QParams& params) {
    const int id = add({.name = "input" + std::to_string(program.inputs.size()),
                        .shape = shape,
                        .params = params});
    program.inputs.push_back(id);
    return id;
  }
  int codes(const std::string& name,
            Operation operation,
            std::vector<int> inputs,
            const Shape& shape,
            const QParams& params) {
    const int id = add({.name = name, .shape = shape, .params = params});
    program.steps.push_back({std::move(operation), std::move(inputs), id});
    return id;
  }
  int accumulators(const std::string& name,
                   Operation operation,
                   std::vector<int> inputs,
                   const Shape& shape,
                   std::vector<double> scale) {
    const int id = add({.name = name, .shape = shape, .scale = std::move(scale)});
    program.steps.push_back({std::move(operation), std::move(inputs), id});
    return id;
  }

  Program program;

 private:
  int add(Value value) {
    program.values.push_back(std::move(value));
    return static_cast<int>(program.values.size()) - 1;
  }
};

/// For each axis of a value, a list of indices. The list slices, flips, upsamples or pads the axis,
/// or its indices are random. An empty list leaves its axis unchanged; at least one list is not
/// empty.
inline std::vector<std::vector<int32_t>> random_index(const Shape& x, Random& random) {
  std::vector<std::vector<int32_t>> index(static_cast<size_t>(x.rank()));
  const auto moved = static_cast<size_t>(random.below(x.rank()));
  for (size_t k = 0; k < index.size(); ++k) {
    if (k != moved && random.below(2) == 0) continue;
    const auto extent = x[static_cast<int>(k)];
    const int64_t begin = random.below(extent);
    const int64_t kind = random.below(4);
    const int64_t repeat = kind == 0 ? 1 + random.below(2) : 1;
    for (int64_t i = kind == 1 ? 0 : begin; i < extent; ++i) {
      const int64_t from = kind == 1 ? extent - 1 - i : kind == 2 ? random.below(extent) : i;
      for (int64_t r = 0; r < repeat; ++r) index[k].push_back(static_cast<int32_t>(from));
    }
    if (kind == 3) index[k].insert(index[k].begin(), static_cast<size_t>(1 + random.below(2)), -1);
    if (random.below(3) == 0) index[k].push_back(-1);
  }
  return index;
}

/// Positions of the values of every_operation().
namespace every {
enum ValueId {
  kInput0,
  kInput1,
  kSum,
  kConv,
  kMax,
  kAvg,
  kBoth,
  kSquashed,
  kFlat,
  kFc,
  kLogits,
  kMoved,
  kSoftmax,
  kScaled,
  kTotal
};
/// The position of the step that writes the value.
constexpr size_t step_position(ValueId output) { return static_cast<size_t>(output - kSum); }
}  // namespace every

/// A program with every operation; linear and add occur twice. It has two inputs. Its outputs are
/// accumulators, codes, and the same accumulators again. Most members differ from their defaults.
inline Program every_operation() {
  Builder b;
  const QParams conv_y{{.bits = 8, .is_signed = true}, -1, {0.011f}, {-20}};
  const int x0 = b.input({4, 4, 2}, kX);
  const int x1 = b.input({4, 4, 2}, kSigned);
  const int sum = b.codes("sum",
                          QuantizedAdd::make(32, {kX, kSigned}, kY, Activation::kRelu6),
                          {x0, x1},
                          {4, 4, 2},
                          kY);
  const kernels::Conv2dShape shape{
      .n = 1, .h = 4, .w = 4, .c = 2, .o = 3, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1};
  const RandomProduct conv({.outputs = 3, .length = 18, .x = kY, .weight_bits = 4}, 1);
  const int convolved =
      b.codes("conv", QuantizedConv2d{shape, conv.behind(conv_y)}, {sum}, {4, 4, 3}, conv_y);
  const int max = b.codes(
      "max", QuantizedMaxPool2d{pool_shape(4, 4, 3, 2, 2, 0)}, {convolved}, {2, 2, 3}, conv_y);
  const auto window = pool_shape(4, 4, 3, 3, 2, 1);
  const int avg = b.codes("avg",
                          QuantizedAvgPool2d::make(window, conv_y, kY, Activation::kNone),
                          {convolved},
                          {2, 2, 3},
                          kY);
  const int both =
      b.codes("both",
              QuantizedConcat::make(4, {3, 3}, {conv_y, kY}, kSigned, Activation::kNone),
              {max, avg},
              {2, 2, 6},
              kSigned);
  const int squashed =
      b.codes("squashed",
              QuantizedLookup::function(24,
                                        {code_values([](double v) { return v * v; }, kSigned)},
                                        kSigned,
                                        kX,
                                        Activation::kNone,
                                        "square"),
              {both},
              {2, 2, 6},
              kX);
  const int flat = b.codes("flat", View{24}, {squashed}, {24}, kX);
  const RandomProduct hidden({.outputs = 5, .length = 12, .x = kX, .weight_bits = 2, .bias = false},
                             2);
  const int fc = b.codes(
      "fc", QuantizedLinear{2, 12, 5, hidden.behind(kY, Activation::kRelu)}, {flat}, {2, 5}, kY);
  const RandomProduct last({.outputs = 3, .length = 10, .x = kY}, 3);
  const int logits =
      b.accumulators("logits", QuantizedLinear{1, 10, 3, last.product}, {fc}, {3}, last.scale);
  b.program.outputs = {logits, squashed, logits};
  // Nothing reads the values below. "moved" adds a row before the rows of `both` and a column after
  // its columns, and keeps two of its six channels.
  b.codes("moved",
          Gather::make({2, 2, 6}, {{-1, 0, 1}, {0, 1, -1}, {4, 1}}, 125),
          {both},
          {3, 3, 2},
          kSigned);
  b.codes("softmax",
          QuantizedSoftmax::make(2, 5, kY, kSigned, Activation::kNone),
          {fc},
          {2, 5},
          kSigned);
  b.codes("scaled",
          QuantizedMul::make(4, 12, conv_y, kY, kSigned, Activation::kNone),
          {convolved, avg},
          {4, 4, 3},
          kSigned);
  b.codes("total",
          QuantizedAdd::make(12, {conv_y, kY, conv_y}, kX, Activation::kNone),
          {max, avg, max},
          {2, 2, 3},
          kX);
  return b.program;
}

/// A concatenation of `count` copies of one element.
inline Program wide_concat(size_t count) {
  Builder b;
  const int input = b.input({1}, kX);
  const auto op = QuantizedConcat::make(
      1, std::vector<int64_t>(count, 1), std::vector<QParams>(count, kX), kX, Activation::kNone);
  b.program.outputs = {
      b.codes("all", op, std::vector<int>(count, input), {static_cast<int64_t>(count)}, kX)};
  return b.program;
}

/// One convolution with random weights.
inline Program convolution(const kernels::Conv2dShape& shape) {
  Builder b;
  const int x = b.input({shape.h, shape.w, shape.c}, kX);
  const RandomProduct p({.outputs = shape.o, .length = shape.reduction(), .x = kX}, 1);
  const Shape y{shape.oh(), shape.ow(), shape.o};
  b.program.outputs = {b.codes("conv", QuantizedConv2d{shape, p.behind(kY)}, {x}, y, kY)};
  return b.program;
}

/// Images of bits, a convolution to bits, and a linear layer, with weights of 1 bit.
inline Program binary(int64_t x_bits) {
  Builder b;
  int x = b.input({6, 5, 40}, kBit);
  const kernels::Conv2dShape s{
      .h = 6, .w = 5, .c = 40, .o = 24, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1};
  RandomProduct conv(
      {.outputs = 24, .length = s.reduction(), .x = kBit, .weight_bits = 1, .bias = false}, 1);
  conv.product.x_bits = x_bits;
  x = b.codes("conv", QuantizedConv2d{s, conv.behind(kBit)}, {x}, {6, 5, 24}, kBit);
  RandomProduct out({.outputs = 10, .length = 720, .x = kBit, .weight_bits = 1}, 2);
  out.product.x_bits = x_bits;
  b.program.outputs = {
      b.accumulators("out", QuantizedLinear{1, 720, 10, out.product}, {x}, {10}, out.scale)};
  return b.program;
}

/// linear - ReLU - linear; the logits have one scale.
inline Program mlp(int64_t inputs = 12, int64_t hidden = 9, int64_t outputs = 4) {
  Builder b;
  const QParams x{{.bits = 8}, -1, {1.0f / 255.0f}, {0}};
  const int input = b.input({inputs}, x);
  const RandomProduct first({.outputs = hidden, .length = inputs, .x = x}, 1);
  const QParams y{{.bits = 8}, -1, {0.01f}, {0}};
  const int between =
      b.codes("0",
              QuantizedLinear{1, inputs, hidden, first.behind(y, Activation::kRelu)},
              {input},
              {hidden},
              y);
  const RandomProduct last({.outputs = outputs, .length = hidden, .x = y}, 2);
  const int logits = b.accumulators(
      "2", QuantizedLinear{1, hidden, outputs, last.product}, {between}, {outputs}, {0.0125});
  b.program.outputs = {logits};
  return b.program;
}

/// Random operations on values of up to 300 elements, with dead values, several inputs and several
/// outputs.
inline Program random_program(uint64_t seed) {
  Random random(seed, 5);
  Random extra(seed, 6);  // for newer draws, so that `random` gives the same as ever
  Builder b;
  const QParams all[] = {kX, kSigned, kY};
  const auto params = [&]() -> const QParams& { return all[random.below(3)]; };
  std::vector<int> readable;
  const auto any = [&] {
    return readable[static_cast<size_t>(random.below(static_cast<int64_t>(readable.size())))];
  };
  const int64_t inputs = 1 + random.below(3);
  for (int64_t i = 0; i < inputs; ++i)
    readable.push_back(b.input({1 + random.below(300)}, params()));
  const int64_t steps = random.below(20);
  for (int64_t i = 0; i < steps; ++i) {
    const int x = any();
    const Value value = b.program.value(x);
    const int64_t size = value.shape.elements();
    const std::string name = "step" + std::to_string(i);
    const QParams& y = params();
    switch (random.below(11)) {
      case 8: {
        int64_t classes = 1 + random.below(30);
        while (size % classes != 0) --classes;
        const auto op =
            QuantizedSoftmax::make(size / classes, classes, *value.params, y, Activation::kNone);
        readable.push_back(b.codes(name, op, {x}, {size}, y));
        break;
      }
      case 9: {
        // Multiplies x by a value of the same size, or by a smaller value that holds a factor for
        // each column. If no value is drawn, multiplies x by itself.
        int other = x;
        for (const int id : readable) {
          if (size % b.program.value(id).shape.elements() == 0 && random.below(2) == 0) other = id;
        }
        const Value& factors = b.program.value(other);
        const int64_t channels = factors.shape.elements();
        const auto op = QuantizedMul::make(
            size / channels, channels, *value.params, *factors.params, y, Activation::kNone);
        readable.push_back(b.codes(name, op, {x, other}, {size}, y));
        break;
      }
      case 7: {
        // Two extents whose product is the size.
        int64_t columns = 1 + random.below(5);
        while (size % columns != 0) --columns;
        const Shape shape{size / columns, columns};
        const auto index = random_index(shape, random);
        const int32_t fill = stored_zero_point(*value.params);
        const Gather op = Gather::make(shape, index, fill);
        if (op.output_size() > 300) break;
        readable.push_back(b.codes(name, op, {x}, {op.output_size()}, *value.params));
        break;
      }
      case 0: {
        int other = x;
        for (const int id : readable) {
          if (b.program.value(id).shape.elements() == size && random.below(2) == 0) other = id;
        }
        // There are usually two operands, sometimes more, rarely one.
        std::vector<int> operands = {x, other};
        while (extra.below(3) == 0) operands.push_back(extra.below(2) == 0 ? x : other);
        if (extra.below(8) == 0) operands.resize(1);
        std::vector<QParams> operand_params;
        for (const int id : operands) operand_params.push_back(*b.program.value(id).params);
        const auto op = QuantizedAdd::make(size, operand_params, y, Activation::kNone);
        readable.push_back(b.codes(name, op, operands, {size}, y));
        break;
      }
      case 1: {
        // A number of channels that divides the size.
        int64_t channels = 1 + random.below(7);
        while (size % channels != 0) --channels;
        std::vector<CodeValues> values(static_cast<size_t>(channels));
        for (CodeValues& channel : values) {
          for (double& v : channel) v = random.uniform(-2.0f, 2.0f);
        }
        const auto op = QuantizedLookup::function(
            size, values, *value.params, y, Activation::kNone, "channels");
        readable.push_back(b.codes(name, op, {x}, {size}, y));
        break;
      }
      case 2:
        readable.push_back(
            b.codes(name,
                    QuantizedLookup::rescale(size, *value.params, y, Activation::kRelu),
                    {x},
                    {size},
                    y));
        break;
      case 3: readable.push_back(b.codes(name, View{size}, {x}, {1, size}, *value.params)); break;
      case 4: {
        const int other = any();
        const int64_t more = b.program.value(other).shape.elements();
        if (size + more > 300) break;
        const auto op = QuantizedConcat::make(
            1, {size, more}, {*value.params, *b.program.value(other).params}, y, Activation::kNone);
        readable.push_back(b.codes(name, op, {x, other}, {size + more}, y));
        break;
      }
      case 5: {
        kernels::Conv2dShape shape = pool_shape(1, size, 1, 1, 1, 0);
        shape.kw = std::min<int64_t>(size, 2);
        shape.stride_w = 1 + random.below(2);
        if (random.below(2) == 0) {
          readable.push_back(
              b.codes(name, QuantizedMaxPool2d{shape}, {x}, {shape.y_elements()}, *value.params));
        } else {
          const auto op = QuantizedAvgPool2d::make(shape, *value.params, y, Activation::kNone);
          readable.push_back(b.codes(name, op, {x}, {shape.y_elements()}, y));
        }
        break;
      }
      case 6: {
        const kernels::Conv2dShape shape{.n = 1,
                                         .h = 1,
                                         .w = size,
                                         .c = 1,
                                         .o = 1 + random.below(2),
                                         .kh = 1,
                                         .kw = 3,
                                         .stride_w = 2,
                                         .pad_w = 1};
        const auto bits = static_cast<int>(1 + extra.below(8));
        const RandomProduct p(
            {.outputs = shape.o, .length = 3, .x = *value.params, .weight_bits = bits}, seed + 100);
        readable.push_back(
            b.codes(name, QuantizedConv2d{shape, p.behind(y)}, {x}, {shape.y_elements()}, y));
        break;
      }
      default: {
        const int64_t outputs = 1 + random.below(120);
        const RandomProduct p({.outputs = outputs, .length = size, .x = *value.params}, seed + 7);
        if (random.below(2) == 0) {
          const int id = b.accumulators(
              name, QuantizedLinear{1, size, outputs, p.product}, {x}, {outputs}, p.scale);
          b.program.outputs.push_back(id);
        } else {
          readable.push_back(
              b.codes(name, QuantizedLinear{1, size, outputs, p.behind(y)}, {x}, {outputs}, y));
        }
      }
    }
  }
  const int64_t outputs = (b.program.outputs.empty() ? 1 : 0) + random.below(3);
  for (int64_t i = 0; i < outputs; ++i) b.program.outputs.push_back(any());
  return b.program;
}

}  // namespace quantrain::integer::test
