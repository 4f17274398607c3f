#include "framework/integer/input_encoding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/integer/integer_model.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/threads.hpp"

namespace quantrain::integer {
namespace {

InputFeatures random_features(int64_t count, Random& random) {
  InputFeatures features;
  for (int64_t f = 0; f < count; ++f) {
    features.offset.push_back(random.uniform(-50.0f, 50.0f));
    features.scale.push_back(random.uniform(0.01f, 30.0f));
  }
  return features;
}

/// Encodes one value at a time, as docs/quantization.md (20) and (3) define it.
struct Expected {
  std::vector<uint8_t> codes;
  std::vector<bool> inside;
  int64_t outside = 0;

  Expected(const std::vector<float>& x, const QParams& p, const InputFeatures& features) {
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t f = features.empty() ? 0 : i % features.scale.size();
      const float z = features.empty() ? x[i] : (x[i] - features.offset[f]) / features.scale[f];
      codes.push_back(static_cast<uint8_t>(quantize(z, p.scale[0], p.zero_point[0], 0, 255)));
      inside.push_back(gradient_passes(z, p.scale[0], p.zero_point[0], 0, 255));
      outside += !inside.back();
    }
  }
};

// The meaning of bytes is in the name of the call.
template <class X>
concept Classifies = requires(const IntegerModel& model, X x, std::vector<int32_t>& classes) {
  model.classify(x, classes);
  model.run(x, classes);
};
static_assert(Classifies<std::vector<float>>);
static_assert(!Classifies<std::vector<uint8_t>>);

}  // namespace

TEST_CASE(
    "an input is encoded by (20) and (3), on every instruction set and any number of "
    "threads",
    "[integer][input]") {
  Random random(3);
  const QParams params = input_params({-2.0f, 3.0f}, "test");
  const Isa chosen = chosen_isa();
  for (const int64_t width : {0, 1, 2, 3, 7, 16, 1000, 1024, 1025}) {
    const InputFeatures features = random_features(width, random);
    for (const int64_t n : {0, 1, 5, 17, 40000}) {
      std::vector<float> x(static_cast<size_t>(std::max<int64_t>(width, 1) * n % 60000));
      if (width > 0) x.resize(x.size() / static_cast<size_t>(width) * static_cast<size_t>(width));
      for (float& value : x) value = random.uniform(-60.0f, 60.0f);
      const Expected expected(x, params, features);
      CAPTURE(width, x.size());
      for (const int threads : quantrain::test::thread_counts({1, 2})) {
        set_threads(threads);
        for (const Isa isa : usable_isas()) {
          set_isa(isa);
          std::vector<uint8_t> codes(x.size());
          std::vector<uint8_t> mask((x.size() + 7) / 8);
          CHECK(encode_input(x, params, features, codes, "test", mask.data()) == expected.outside);
          CHECK(codes == expected.codes);
          int64_t wrong = 0;
          for (size_t i = 0; i < x.size(); ++i)
            wrong += (mask[i / 8] >> (i % 8) & 1) != (expected.inside[i] ? 1 : 0);
          CHECK(wrong == 0);
          CHECK(encode_input(x, params, features, codes, "test") == expected.outside);
        }
      }
    }
  }
  set_isa(chosen);
  set_threads(0);
}

TEST_CASE("the difference is rounded before the quotient", "[integer][input]") {
  // 2^24 - (-1) = 16777217 is no float32 and rounds to 2^24. 2^24 / 3 = 5592405.33 rounds to
  // 5592405.5.
  CHECK(feature_value(16777216.0f, -1.0f, 3.0f) == 5592405.5f);
  // With the divisor 3, rounding (2^24 + 1) / 3 only once would give the same. With the divisor 5,
  // rounding only once would give another float32.
  CHECK(feature_value(16777216.0f, -1.0f, 5.0f) == static_cast<float>(16777216.0 / 5.0));
  CHECK(raw_value(2.0f, 1000.0f, 0.5f) == 1001.0f);
}

TEST_CASE("a model takes raw values and counts the values that saturate", "[integer][input]") {
  Program program = test::mlp();
  Random random(5);
  const InputFeatures features = random_features(12, random);
  program.values[static_cast<size_t>(program.inputs[0])].features = features;
  const IntegerModel model(program);
  CHECK(model.input_features() == features);
  constexpr int64_t kSamples = 300;  // more than one chunk
  std::vector<float> raw;
  for (int64_t i = 0; i < kSamples * 12; ++i) {
    const auto f = static_cast<size_t>(i % 12);
    raw.push_back(raw_value(random.uniform(-0.2f, 1.2f), features.offset[f], features.scale[f]));
  }
  const Expected expected(raw, model.input_params(), features);
  CHECK(expected.outside > 500);
  std::vector<uint8_t> codes(raw.size());
  CHECK(model.quantize_input(raw, codes) == expected.outside);
  CHECK(codes == expected.codes);
  std::vector<int32_t> from_bytes(kSamples * 4);
  std::vector<int32_t> from_raw(kSamples * 4);
  model.run_codes(codes, from_bytes);
  CHECK(model.run(raw, from_raw) == expected.outside);
  CHECK(from_raw == from_bytes);
  std::vector<int32_t> classes(kSamples);
  std::vector<int32_t> classes_of_raw(kSamples);
  model.classify_codes(codes, classes);
  CHECK(model.classify(raw, classes_of_raw) == expected.outside);
  CHECK(classes_of_raw == classes);
  QUANTRAIN_CHECK_ERROR(model.quantize_input(std::span(raw).first(13), std::span(codes).first(13)),
                        ShapeError,
                        "13 values are not a whole number of rows of 12");
  // The raw value is finite, but its z is not.
  raw.resize(12);
  raw[3] = std::numeric_limits<float>::max() * (features.offset[3] > 0.0f ? -1.0f : 1.0f);
  InputFeatures small = features;
  small.scale[3] = 0.5f;
  program.values[static_cast<size_t>(program.inputs[0])].features = small;
  QUANTRAIN_CHECK_ERROR(IntegerModel(program).quantize_input(raw, std::span(codes).first(12)),
                        DataError,
                        "the input has a NaN or an infinity");
}

TEST_CASE("the hash and size of a program include its features, if it has any",
          "[integer][input]") {
  Program program = test::mlp();
  const uint64_t plain = content_hash(program);
  CHECK(plain == 8108141676630006965u);  // the same as before features existed
  const int64_t bytes = size_bytes(program);
  InputFeatures& features = program.values[static_cast<size_t>(program.inputs[0])].features;
  features = {std::vector<float>(12, 0.0f), std::vector<float>(12, 1.0f)};
  const uint64_t with = content_hash(program);
  CHECK(with != plain);
  CHECK(size_bytes(program) == bytes + 12 * 8);
  features.offset[11] = 1.0f;
  const uint64_t moved = content_hash(program);
  CHECK(moved != with);
  features.offset[11] = 0.0f;
  features.scale[11] = 2.0f;
  CHECK(content_hash(program) != with);
  CHECK(content_hash(program) != moved);
}

TEST_CASE("invalid features and ranges are refused", "[integer][input]") {
  const auto refused = [](const InputFeatures& features, const char* text) {
    Program program = test::mlp();
    program.values[static_cast<size_t>(program.inputs[0])].features = features;
    QUANTRAIN_CHECK_ERROR(validate(program), QuantError, text);
  };
  const std::vector<float> ones(12, 1.0f);
  const auto with = [&](float value) {
    std::vector<float> changed = ones;
    changed[4] = value;
    return changed;
  };
  refused({ones, std::vector<float>(11, 1.0f)}, "12 offsets and 11 scales of features");
  refused({{1.0f}, {1.0f}}, "expected one for each of the 12");
  refused({ones, {}}, "12 offsets and 0 scales");
  refused({ones, with(0.0f)}, "feature 4 has offset 1 and scale 0");
  refused({ones, with(-1.0f)}, "scale -1");
  refused({ones, with(HUGE_VALF)}, "scale inf");
  refused({ones, with(std::nanf(""))}, "scale nan");
  refused({with(HUGE_VALF), ones}, "offset inf");
  Program program = test::mlp();
  program.values[1].features = {std::vector<float>(9, 1.0f), std::vector<float>(9, 1.0f)};
  QUANTRAIN_CHECK_ERROR(validate(program), GraphError, "[0] has features, but is not an input");
  for (const Range range :
       {Range{1.0f, 1.0f}, Range{2.0f, 1.0f}, Range{0.0f, HUGE_VALF}, Range{std::nanf(""), 1.0f}}) {
    QUANTRAIN_CHECK_ERROR(input_params(range, "here"), QuantError, "[here] the range [");
  }
}

TEST_CASE("a declared range far from 0 is refused if fewer than 16 codes lie within it",
          "[integer][input]") {
  // The scale is 1001 / 255 = 3.9255: 1000 and 1001 both have code 255.
  QUANTRAIN_CHECK_ERROR(
      input_params({1000.0f, 1001.0f}, "here"),
      QuantError,
      "[here] the range [1000, 1001] is too far from 0: real 0 must have a code, too, so only 1 of "
      "the 256 codes lie within the range, fewer than 16. Subtract an offset: declare features "
      "(InputFeatures) with offset 1000 and scale 1, or those of fit_mean_std(), and the range of "
      "the shifted values, such as [0, 1]");
  QUANTRAIN_CHECK_ERROR(input_params({-1001.0f, -1000.0f}, "here"), QuantError, "only 1 of");
  // Scale 1: codes 240 and 241 are the lowest within.
  QUANTRAIN_CHECK_ERROR(input_params({241.0f, 255.0f}, "here"), QuantError, "only 15 of");
  CHECK(input_params({240.0f, 255.0f}, "here").scale[0] == 1.0f);
  CHECK(input_params({-255.0f, -240.0f}, "here").zero_point[0] == 255);
  CHECK_NOTHROW(input_params({-1.0f, 1e-6f}, "here"));  // contains 0: all codes
}

TEST_CASE("calls on raw values count those that saturate, and refuse a batch of which most do",
          "[integer][input]") {
  test::Builder b;  // three inputs of [0, 1] are the logits
  const QParams unit = input_params({0.0f, 1.0f}, "test");
  b.program.outputs = {b.input({3}, unit)};
  const IntegerModel model(b.program);
  std::vector<int32_t> classes(2), integers(6);
  std::vector<float> logits(6);
  const std::vector<float> inside{0.2f, 0.4f, 0.6f, 1.0f, 0.8f, 0.0f};
  CHECK(model.classify(inside, classes) == 0);
  const std::vector<float> half{0.2f, 0.4f, 9.0f, 0.6f, -1.0f, 1.5f};
  CHECK(model.classify(half, classes) == 3);
  CHECK(classes == std::vector<int32_t>{2, 2});
  CHECK(model.run(half, integers) == 3);
  CHECK(integers == std::vector<int32_t>{51, 102, 255, 153, 0, 255});
  CHECK(model.run(half, logits) == 3);
  QUANTRAIN_CHECK_ERROR(model.run(half, integers, Outside::kRefuse),
                        DataError,
                        "[IntegerModel] 3 of 6 values lie outside of [0, 1], what the codes of "
                        "input0 mean: pass values in the units of the training data, or "
                        "Outside::kSaturate");

  // Pixels as floats from 0 to 255: without an error, all would have the first class.
  const std::vector<float> pixels{10.0f, 20.0f, 0.0f, 255.0f, 1.0f, 2.0f};
  classes = {-1, -1};
  integers.assign(6, -1);
  logits.assign(6, -1.0f);
  QUANTRAIN_CHECK_ERROR(model.classify(pixels, classes), DataError, "4 of 6 values lie outside");
  QUANTRAIN_CHECK_ERROR(model.run(pixels, integers), DataError, "4 of 6 values lie outside");
  QUANTRAIN_CHECK_ERROR(model.run(pixels, logits), DataError, "4 of 6 values lie outside");
  CHECK(classes == std::vector<int32_t>{-1, -1});
  CHECK(integers == std::vector<int32_t>(6, -1));
  CHECK(logits == std::vector<float>(6, -1.0f));
  CHECK(model.classify(pixels, classes, Outside::kSaturate) == 4);
  CHECK(model.run(pixels, integers, Outside::kSaturate) == 4);
  CHECK(model.run(pixels, logits, Outside::kSaturate) == 4);

  // What earlier chunks held counts, too: the last chunk is one sample that saturates.
  std::vector<float> many(257 * 3, 0.5f);
  std::vector<int32_t> many_classes(257);
  std::fill_n(many.end() - 3, 3, 2.0f);
  CHECK(model.classify(many, many_classes) == 3);
  std::fill(many.begin(), many.end(), 2.0f);
  QUANTRAIN_CHECK_ERROR(model.classify(many, many_classes), DataError, "771 of 771 values");

  // Whether a call is refused does not depend on the order of its samples.
  many.assign(600 * 3, 0.5f);
  many_classes.resize(600);
  std::fill_n(many.begin(), 256 * 3, 2.0f);
  CHECK(model.classify(many, many_classes) == 768);
  std::reverse(many.begin(), many.end());
  CHECK(model.classify(many, many_classes) == 768);
}

TEST_CASE("a call of eight samples refuses a column of which nearly all values saturate",
          "[integer][input]") {
  test::Builder b;
  b.program.outputs = {b.input({6}, input_params({0.0f, 1.0f}, "test"))};
  b.program.values[0].features = {{0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 2}};
  const IntegerModel model(b.program);
  const auto rows = [](int64_t n, int64_t outside, float value) {
    std::vector<float> x(static_cast<size_t>(n) * 6, 0.5f);
    for (int64_t i = 0; i < outside; ++i) x[static_cast<size_t>(i) * 6 + 5] = value;
    return x;
  };
  const auto run = [&](int64_t n, int64_t outside, float value, Outside how) {
    std::vector<int32_t> integers(static_cast<size_t>(n) * 6), classes(static_cast<size_t>(n));
    const std::vector<float> x = rows(n, outside, value);
    const int64_t saturated = model.run(x, integers, how);
    CHECK(model.classify(x, classes, how) == saturated);
    return saturated;
  };
  const auto most = Outside::kRefuseMost;
  CHECK(run(7, 7, 1000.0f, most) == 7);
  QUANTRAIN_CHECK_ERROR(run(8, 8, 1000.0f, most),
                        DataError,
                        "[IntegerModel] 8 of 8 values of column 5 lie outside of [0, 1], what the "
                        "codes of input0 mean (after offset and scale): pass values in the units "
                        "of the training data, or Outside::kSaturate");
  CHECK(run(8, 7, 1000.0f, most) == 7);
  CHECK(run(8, 8, 2.0f, most) == 0);  // its scale is 2: a value at the limit is inside
  CHECK(run(20, 18, -9.0f, most) == 18);
  CHECK_THROWS_AS(run(20, 19, -9.0f, most), DataError);
  CHECK(run(20, 20, -9.0f, Outside::kSaturate) == 20);
  CHECK(run(600, 540, -9.0f, most) == 540);  // several chunks
  QUANTRAIN_CHECK_ERROR(run(600, 541, -9.0f, most), DataError, "541 of 600 values of column 5");

  // A camera whose third channel has other units.
  b.program.values[0].shape = {2, 1, 3};
  b.program.values[0].features = {{0, 0, 0}, {1, 1, 0.01f}};
  const IntegerModel camera(b.program);
  const std::vector<uint8_t> pixels(8 * 6, 200);
  std::vector<int32_t> integers(8 * 6);
  QUANTRAIN_CHECK_ERROR(
      camera.run_pixels(pixels, integers), DataError, "16 of 16 values of column 2");
  CHECK(camera.run_pixels(pixels, integers, Outside::kSaturate) == 16);
  CHECK(camera.run_pixels(std::span(pixels).first(7 * 6), std::span(integers).first(7 * 6)) == 14);
}

TEST_CASE("each of several inputs is refused by its own columns", "[integer][input]") {
  test::Builder b;
  const QParams unit = input_params({0.0f, 1.0f}, "test");
  const int first = b.input({3}, unit);
  b.program.outputs = {first, b.input({4}, unit)};
  const IntegerModel model(b.program);
  const std::vector<float> inside(10 * 3, 0.5f);
  std::vector<float> other(10 * 4, 0.5f), a(10 * 3), c(10 * 4);
  for (size_t i = 2; i < other.size(); i += 4) other[i] = 7.0f;
  const std::vector<std::span<const float>> x{inside, other};
  const std::vector<std::span<float>> y{a, c};
  QUANTRAIN_CHECK_ERROR(model.run(x, y),
                        DataError,
                        "10 of 10 values of column 2 lie outside of [0, 1], what the codes of "
                        "input1");
  CHECK(model.run(x, y, Outside::kSaturate) == 10);
}

TEST_CASE("each of several inputs is refused by its own values", "[integer][input]") {
  test::Builder b;
  const QParams unit = input_params({0.0f, 1.0f}, "test");
  const int large = b.input({10}, unit);
  b.program.outputs = {large, b.input({2}, unit)};
  const IntegerModel model(b.program);
  const std::vector<float> image(10, 0.5f), units{20.0f, 30.0f};
  const std::vector<std::span<const float>> x{image, units};
  std::vector<float> a(10), c(2);
  const std::vector<std::span<float>> y{a, c};
  QUANTRAIN_CHECK_ERROR(
      model.run(x, y), DataError, "2 of 2 values lie outside of [0, 1], what the codes of input1");
  CHECK(model.run(x, y, Outside::kSaturate) == 2);
}

TEST_CASE("pixels mean byte / 255, codes what the input's parameters say", "[integer][input]") {
  const std::vector<uint8_t> bytes{0, 51, 102, 255, 204, 153};
  const auto both = [&](const Range& range, const InputFeatures& features) {
    test::Builder b;
    b.program.outputs = {b.input({2}, input_params(range, "test"))};
    b.program.values[0].features = features;
    const IntegerModel model(b.program);
    std::vector<int32_t> from_floats(6), from_pixels(6), classes(3), expected(3);
    std::vector<float> raw, reals(6), expected_reals(6);
    for (const uint8_t byte : bytes) raw.push_back(static_cast<float>(byte) / 255.0f);
    const int64_t saturated = model.run(raw, from_floats);
    CHECK(model.run_pixels(bytes, from_pixels) == saturated);
    CHECK(from_pixels == from_floats);
    model.run(raw, expected_reals);
    CHECK(model.run_pixels(bytes, reals) == saturated);
    CHECK(reals == expected_reals);
    model.classify(raw, expected);
    CHECK(model.classify_pixels(bytes, classes) == saturated);
    CHECK(classes == expected);
    std::vector<uint8_t> codes(6), codes_of_raw(6);
    CHECK(model.quantize_pixels(bytes, codes) == saturated);
    model.quantize_input(raw, codes_of_raw);
    CHECK(codes == codes_of_raw);
    return codes;
  };
  CHECK(both({0.0f, 1.0f}, {}) == bytes);
  // Steps of 3.5 / 255, zero point 36: 0.2 is 14.6 steps, 1 is 72.9.
  CHECK(both({-0.5f, 3.0f}, {}) == std::vector<uint8_t>{36, 51, 65, 109, 94, 80});
  // Steps of 1 / 255, zero point 64. Feature 1 is 4 (x - 0.5): 0.2 and 1 saturate at -1.2 and 2.
  CHECK(both({-0.25f, 0.75f}, {{0.25f, 0.5f}, {1.0f, 0.25f}}) ==
        std::vector<uint8_t>{0, 0, 102, 255, 204, 166});

  test::Builder b;
  b.program.outputs = {b.input({2}, input_params({0.0f, 0.25f}, "test"))};
  const IntegerModel dark(b.program);
  std::vector<int32_t> y(6);
  QUANTRAIN_CHECK_ERROR(dark.run_pixels(bytes, y), DataError, "4 of 6 values lie outside");
  CHECK(dark.run_pixels(bytes, y, Outside::kSaturate) == 4);
}

}  // namespace quantrain::integer
