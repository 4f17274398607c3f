#include "framework/integer/input_encoding.hpp"

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
  model.run(codes, from_bytes);
  model.run(raw, from_raw);
  CHECK(from_raw == from_bytes);
  std::vector<int32_t> classes(kSamples);
  std::vector<int32_t> classes_of_raw(kSamples);
  model.classify(codes, classes);
  model.classify(raw, classes_of_raw);
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

}  // namespace quantrain::integer
