#include "framework/integer/dead_channels.hpp"

#include <algorithm>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "framework/integer/integer_model.hpp"
#include "tests/catch.hpp"
#include "tests/memory_taken.hpp"
#include "tests/sanitized.hpp"

// Most tests run a program before and after remove_dead_channels(): all outputs must be equal for
// random inputs.
namespace quantrain::integer {
namespace {

const QParams kParams{{.bits = 8}, -1, {0.05f}, {3}};

/// Builds a program step by step. Convolutions and linear layers have random weights, and a ReLU if
/// they give codes.
class NetworkBuilder {
 public:
  explicit NetworkBuilder(uint64_t seed) : random_(seed) {}

  int input(const Shape& shape) {
    program.inputs.push_back(value(shape));
    return program.inputs.back();
  }
  int conv(int x, int64_t outputs, int64_t kernel, int64_t padding, bool depthwise = false) {
    const Shape& in = program.value(x).shape;
    QuantizedConv2d op;
    op.shape = {.h = in[0], .w = in[1], .c = in[2], .o = outputs, .kh = kernel, .kw = kernel};
    op.shape.pad_h = op.shape.pad_w = padding;
    op.shape.groups = depthwise ? in[2] : 1;
    op.product = product(outputs, op.shape.reduction());
    const Shape out{op.shape.oh(), op.shape.ow(), outputs};
    return step(op, {x}, out);
  }
  int linear(int x, int64_t outputs, bool accumulators = false) {
    const Shape& in = program.value(x).shape;
    QuantizedLinear op{.inputs = in.back(), .outputs = outputs, .product = {}};
    op.product = product(outputs, op.inputs);
    if (accumulators) op.product.output.reset();
    return step(op, {x}, {outputs});
  }
  int max_pool(int x) {
    return pooled(x, [](const kernels::Conv2dShape& s) { return QuantizedMaxPool2d{s}; });
  }
  int avg_pool(int x) {
    return pooled(x, [](const kernels::Conv2dShape& s) {
      return QuantizedAvgPool2d::make(s, kParams, kParams, Activation::kNone);
    });
  }
  int add(const std::vector<int>& x) {
    const Shape shape = program.value(x[0]).shape;
    const auto op = QuantizedAdd::make(
        shape.elements(), std::vector<QParams>(x.size(), kParams), kParams, Activation::kRelu);
    return step(op, x, shape);
  }
  /// Multiplies x by a factor for each channel, or by a value of x's shape.
  int mul(int x, int factors) {
    const Shape shape = program.value(x).shape;
    const int64_t channels = program.value(factors).shape.elements();
    const auto op = QuantizedMul::make(
        shape.elements() / channels, channels, kParams, kParams, kParams, Activation::kNone);
    return step(op, {x, factors}, shape);
  }
  int lookup(int x) {
    const Shape shape = program.value(x).shape;
    QuantizedLookup op{.size = shape.elements()};
    for (size_t q = 0; q < 256; ++q) op.table[q] = static_cast<uint8_t>(q / 2 + 5);
    return step(op, {x}, shape);
  }
  /// A lookup with a table for each channel. Every third table has the same result for all codes.
  int channel_lookup(int x) {
    const Shape shape = program.value(x).shape;
    QuantizedLookup op{.size = shape.elements(), .table = {}};
    for (int64_t c = 0; c < shape.back(); ++c) {
      for (int64_t q = 0; q < 256; ++q)
        op.table.push_back(static_cast<uint8_t>(c % 3 == 0 ? 40 + c : q / (c + 1)));
    }
    return step(op, {x}, shape);
  }
  int concat(int a, int b) {
    const Shape sa = program.value(a).shape;
    const Shape sb = program.value(b).shape;
    const auto op = QuantizedConcat::make(
        sa[0] * sa[1], {sa[2], sb[2]}, {kParams, kParams}, kParams, Activation::kNone);
    return step(op, {a, b}, {sa[0], sa[1], sa[2] + sb[2]});
  }
  int flatten(int x) {
    const int64_t size = program.value(x).shape.elements();
    return step(View{size}, {x}, {size});
  }

  /// Makes channel o of value `id` constant: sets the channel's weights to 0 and its bias to
  /// `bias`. The value must be the output of a convolution or linear layer.
  void kill(int id, int64_t o, int32_t bias) {
    for (Step& s : program.steps) {
      if (s.output != id) continue;
      std::visit(
          [&](auto& op) {
            if constexpr (requires { op.product; }) {
              const int64_t length = op.product.weight.size() / op.channels();
              std::vector<int8_t> weight = op.product.weight.values();
              std::vector<int32_t> biases(op.product.bias.begin(), op.product.bias.end());
              std::fill_n(weight.begin() + o * length, length, int8_t{0});
              biases[static_cast<size_t>(o)] = bias;
              op.product.weight = {std::move(weight), op.product.weight.bits()};
              op.product.bias = std::move(biases);
            }
          },
          s.operation);
    }
  }

  Program program;

 private:
  int value(const Shape& shape) {
    program.values.push_back(
        {.name = std::to_string(program.values.size()), .shape = shape, .params = kParams});
    return static_cast<int>(program.values.size()) - 1;
  }
  int step(Operation op, std::vector<int> inputs, const Shape& shape) {
    const bool accumulators = gives_accumulators(op);
    const int id = value(shape);
    if (accumulators) {
      program.values.back().params.reset();
      program.values.back().scale = {0.001};
    }
    program.steps.push_back({std::move(op), std::move(inputs), id});
    return id;
  }
  template <class Make>
  int pooled(int x, const Make& make) {
    const Shape in = program.value(x).shape;
    const kernels::Conv2dShape s{.h = in[0],
                                 .w = in[1],
                                 .c = in[2],
                                 .o = in[2],
                                 .kh = 2,
                                 .kw = 2,
                                 .stride_h = 2,
                                 .stride_w = 2,
                                 .pad_h = 1,
                                 .pad_w = 1,
                                 .groups = in[2]};
    return step(make(s), {x}, {s.oh(), s.ow(), s.c});
  }
  QuantizedProduct product(int64_t outputs, int64_t length) {
    QuantizedProduct p;
    p.zero_x = 3;
    std::vector<int8_t> weight;
    std::vector<int32_t> bias;
    for (int64_t i = 0; i < outputs * length; ++i)
      weight.push_back(static_cast<int8_t>(random_.below(255) - 127));
    for (int64_t o = 0; o < outputs; ++o)
      bias.push_back(static_cast<int32_t>(random_.below(4001) - 2000));
    p.weight = std::move(weight);
    p.bias = std::move(bias);
    std::vector<double> scale(static_cast<size_t>(outputs), 0.0004);
    p.output = requantization(scale, kParams, Activation::kRelu);
    return p;
  }

  Random random_;
};

std::vector<int32_t> outputs_of(const Program& program, uint64_t seed) {
  const IntegerModel model(program);
  Random random(seed);
  const int64_t n = 5;
  std::vector<uint8_t> x(static_cast<size_t>(n * model.input_shape().elements()));
  for (uint8_t& byte : x) byte = static_cast<uint8_t>(random.below(256));
  std::vector<int32_t> y(static_cast<size_t>(n * model.output_size()));
  model.run_codes(x, y);
  return y;
}

/// Checks that removing dead channels changes no output, and that the last axis of value i then has
/// channels[i] elements.
void check_pass(const Program& program, const std::vector<int64_t>& channels) {
  const Program smaller = remove_dead_channels(program);
  std::vector<int64_t> left;
  for (const Value& value : smaller.values) left.push_back(value.shape.back());
  CHECK(left == channels);
  for (uint64_t seed = 0; seed < 4; ++seed)
    CHECK(outputs_of(program, seed) == outputs_of(smaller, seed));
  CHECK(remove_dead_channels(smaller) == smaller);
}

}  // namespace

TEST_CASE("a program without dead channels does not change", "[integer][dead_channels]") {
  NetworkBuilder b(1);
  const int x = b.input({6, 5, 3});
  const int y = b.linear(b.flatten(b.max_pool(b.conv(x, 4, 3, 1))), 7, true);
  b.program.outputs = {y};
  CHECK(remove_dead_channels(b.program) == b.program);
}

TEST_CASE("dead channels are folded through pools, lookups and views into the next bias",
          "[integer][dead_channels]") {
  NetworkBuilder b(2);
  const int x = b.input({6, 5, 3});
  const int c = b.conv(x, 6, 3, 1);
  b.kill(c, 1, -5000);  // always the lowest code
  b.kill(c, 4, 1300);   // another constant
  const int y = b.linear(b.flatten(b.lookup(b.max_pool(c))), 7, true);
  b.program.outputs = {y};
  // The conv, pool, lookup and flatten keep 4 of 6 channels. The pool gives 4 x 3 pixels.
  check_pass(b.program, {3, 4, 4, 4, 4 * 12, 7});
}

TEST_CASE("lookup tables are removed with their channels", "[integer][dead_channels]") {
  NetworkBuilder b(8);
  const int x = b.input({6, 5, 3});
  const int c = b.conv(x, 7, 3, 1);
  b.kill(c, 1, -5000);
  const int y = b.linear(b.flatten(b.channel_lookup(c)), 7, true);
  b.program.outputs = {y};
  // The tables make channels 0, 3 and 6 constant. The convolution makes channel 1 constant.
  check_pass(b.program, {3, 3, 3, 3 * 30, 7});
  const Program smaller = remove_dead_channels(b.program);
  CHECK(std::get<QuantizedLookup>(smaller.steps[1].operation).channels() == 3);
}

TEST_CASE("an average pool passes on a constant that all windows round alike",
          "[integer][dead_channels]") {
  NetworkBuilder b(3);
  const int x = b.input({6, 5, 3});
  const int c = b.conv(x, 3, 1, 0);
  b.kill(c, 2, 0);
  b.program.outputs = {b.linear(b.flatten(b.avg_pool(c)), 4)};
  check_pass(b.program, {3, 2, 2, 2 * 12, 4});
}

TEST_CASE("a constant before a padded convolution stays unless it is the zero point",
          "[integer][dead_channels]") {
  for (const bool zero : {true, false}) {
    NetworkBuilder b(4);
    const int x = b.input({6, 5, 3});
    const int c = b.conv(x, 4, 1, 0);
    b.kill(c, 0, zero ? -100000 : 2000);  // the ReLU's lowest code is the zero point
    const int padded = b.conv(c, 5, 3, 1);
    b.program.outputs = {padded};
    check_pass(b.program, {3, zero ? 3 : 4, 5});
  }
  for (const int64_t end : {0, 1}) {
    NetworkBuilder b(4);
    const int x = b.input({6, 5, 3});
    const int c = b.conv(x, 4, 1, 0);
    b.kill(c, 0, 2000);
    const int last = b.conv(c, 5, 3, 0);  // without padding, the constant is in every window
    kernels::Conv2dShape& shape = std::get<QuantizedConv2d>(b.program.steps.back().operation).shape;
    shape.end_w = end;
    b.program.values.back().shape = {shape.oh(), shape.ow(), 5};
    b.program.outputs = {last};
    check_pass(b.program, {3, end > 0 ? 4 : 3, 5});
  }
}

TEST_CASE("dead depthwise channels are removed, and so are the inputs that only they read",
          "[integer][dead_channels]") {
  NetworkBuilder b(5);
  const int x = b.input({6, 5, 3});
  const int c = b.conv(x, 6, 1, 0);
  b.kill(c, 2, -100000);
  const int depthwise = b.conv(c, 6, 3, 1, true);
  b.kill(depthwise, 5, 777);  // constant; its input varies, but nothing else reads that input
  b.program.outputs = {b.conv(depthwise, 4, 1, 0)};
  check_pass(b.program, {3, 4, 4, 4});
}

TEST_CASE("a sum and a concatenation keep the channels that any reader needs",
          "[integer][dead_channels]") {
  NetworkBuilder b(6);
  const int x = b.input({4, 4, 3});
  const int p = b.conv(x, 5, 1, 0);
  const int q = b.conv(x, 5, 1, 0);
  for (const int id : {p, q}) b.kill(id, 3, -100000);
  b.kill(p, 1, -100000);  // q's channel 1 is not constant, so the sum varies
  const int sum = b.add({p, q});
  const int r = b.conv(x, 4, 1, 0);
  b.kill(r, 0, 500);
  const int joined = b.concat(sum, r);
  b.program.outputs = {b.conv(joined, 6, 1, 0)};
  check_pass(b.program, {3, 4, 4, 4, 3, 7, 6});

  b.program.outputs.push_back(sum);  // an output keeps all its channels
  const Program smaller = remove_dead_channels(b.program);
  CHECK(smaller.value(sum).shape == Shape{4, 4, 5});
  CHECK(smaller.value(joined).shape == Shape{4, 4, 8});
}

TEST_CASE("a sum of three drops a channel only if all of its operands drop it",
          "[integer][dead_channels]") {
  NetworkBuilder b(6);
  const int x = b.input({4, 4, 3});
  const std::vector<int> terms = {b.conv(x, 5, 1, 0), b.conv(x, 5, 1, 0), b.conv(x, 5, 1, 0)};
  for (const int id : terms) b.kill(id, 3, -100000);
  b.kill(terms[0], 1, -100000);  // only two of three are constant, so the sum varies
  b.kill(terms[1], 1, -100000);
  b.kill(terms[0], 4, -100000);  // only terms[1] varies, so the sum varies
  b.kill(terms[2], 4, -100000);
  const int sum = b.add(terms);
  b.program.outputs = {b.conv(sum, 6, 1, 0)};
  check_pass(b.program, {3, 4, 4, 4, 4, 6});

  // terms[2] is now an output and keeps all its channels. So the other two terms keep theirs, too.
  b.program.outputs.push_back(terms[2]);
  const Program smaller = remove_dead_channels(b.program);
  for (const int id : terms) CHECK(smaller.value(id).shape == Shape{4, 4, 5});
}

TEST_CASE("a factor of 0 also removes the channel that it multiplies, if nothing else reads it",
          "[integer][dead_channels]") {
  NetworkBuilder b(9);
  const int x = b.input({4, 4, 3});
  const int p = b.conv(x, 5, 1, 0);
  const int factors = b.linear(b.flatten(b.max_pool(x)), 5);
  b.kill(factors, 3, -100000);  // real 0: the scaled channel is constant
  b.kill(factors, 1, 2000);     // a constant other than 0: it varies
  b.kill(p, 4, 2000);           // multiplied by varying factors: it varies
  const int scaled = b.mul(p, factors);
  const int squared = b.mul(scaled, scaled);
  b.program.outputs = {b.conv(squared, 6, 1, 0)};
  check_pass(b.program, {3, 4, 3, 27, 4, 4, 4, 6});

  b.program.outputs.push_back(p);  // now another reader needs p
  const Program smaller = remove_dead_channels(b.program);
  CHECK(smaller.value(factors).shape == Shape{5});
  CHECK(smaller.value(scaled).shape == Shape{4, 4, 5});
}

TEST_CASE("a layer of constants keeps one channel", "[integer][dead_channels]") {
  NetworkBuilder b(7);
  const int x = b.input({2, 2, 3});
  const int c = b.conv(x, 4, 1, 0);
  for (int64_t o = 0; o < 4; ++o) b.kill(c, o, 100 * static_cast<int32_t>(o));
  b.program.outputs = {b.linear(b.flatten(c), 3, true)};
  check_pass(b.program, {3, 1, 4, 3});
}

TEST_CASE("what is known of channels has a limit of memory", "[integer][dead_channels]") {
  // A few bytes describe values of 2^24 channels each.
  NetworkBuilder b(1);
  int x = b.input({1, 1, 1 << 24});
  for (int i = 0; i < 20; ++i) x = b.lookup(x);
  b.program.outputs = {x};
  const int64_t taken = quantrain::test::resident_memory_taken([&] {
    QUANTRAIN_CHECK_ERROR(remove_dead_channels(b.program), DataError, "take more than 268");
  });
  if (!quantrain::test::kSanitized) CHECK(taken < int64_t{320} << 20);
  NetworkBuilder small(1);
  const int y = small.input({1, 1, 100});
  small.program.outputs = {small.lookup(y)};
  QUANTRAIN_CHECK_ERROR(remove_dead_channels(small.program, 3199),
                        DataError,
                        "the ranges of codes up to this layer take more than 3199 bytes");
  CHECK(remove_dead_channels(small.program, 3200).steps.size() == 1);
}

}  // namespace quantrain::integer
