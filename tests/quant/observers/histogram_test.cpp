#include "quant/observers/histogram.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "quant/arithmetic.hpp"
#include "tests/quant/observers/loaded_histogram.hpp"
#include "tests/sanitized.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::Json;

const std::vector<QType> kTypes{
    {8, false, false}, {8, true, true}, {4, true, false}, {3, false, false}, {2, true, true}};
constexpr QScheme kSchemes[] = {QScheme::kAffine, QScheme::kSymmetric};

/// The centres and counts of a histogram's bins, and the squared error of quantizing the centres
/// with given parameters.   docs/quantization.md (1), (3)
struct Centres {
  explicit Centres(const Json& json) {
    const auto all = json.at("counts").get<std::vector<double>>();
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] == 0.0) continue;
      const double place = json.at("first").get<double>() + static_cast<double>(i) + 0.5;
      counts.push_back(all[i]);
      x.push_back(std::clamp(static_cast<float>(place * json.at("width").get<double>()),
                             json.at("min").get<float>(),
                             json.at("max").get<float>()));
    }
  }

  double error(const QType& type, float scale, int32_t zero_point) const {
    double error = 0.0;
    for (size_t i = 0; i < x.size(); ++i) {
      const int32_t code = quantize(x[i], scale, zero_point, type.qmin(), type.qmax());
      const double real = static_cast<double>(dequantize(code, scale, zero_point));
      const double difference = real - static_cast<double>(x[i]);
      error += counts[i] * difference * difference;
    }
    return error;
  }
  double error(const QParams& params) const {
    return error(params.type, params.scale[0], params.zero_point[0]);
  }
  double error(Range range, const QType& type, QScheme scheme) const {
    const ScaleZero params = choose_params(range, type, scheme, "test");
    return error(type, params.scale, params.zero_point);
  }

  std::vector<float> x;
  std::vector<double> counts;
};

// If the step of the codes matches the width of the bins, the error as a function of the range has
// dips that are narrower than a bin. The search misses these dips: its smallest step is one bin.
constexpr double kDips = 1e-3;

Tensor normal(int64_t n, float scale, uint64_t seed = 1) {
  Tensor x = Tensor::empty({n});
  Random random(seed);
  for (int64_t i = 0; i < n; ++i) x.mutable_data()[i] = scale * random.normal();
  return x;
}

/// Squared error of the values themselves, not of the bins' centres.
double error_of(const std::vector<float>& x, const QParams& params) {
  const float scale = params.scale[0];
  double error = 0.0;
  for (const float value : x) {
    const int32_t code =
        quantize(value, scale, params.zero_point[0], params.type.qmin(), params.type.qmax());
    const double difference = static_cast<double>(dequantize(code, scale, params.zero_point[0])) -
                              static_cast<double>(value);
    error += difference * difference;
  }
  return error;
}

/// The least squared error of these values for any distance of the codes and any code of 0, found
/// without the observer: 2000 distances, each improved by least squares while the values keep their
/// codes.
double least_error(const std::vector<float>& x, const QType& type, QScheme scheme) {
  double low = 0.0;
  double high = 0.0;
  for (const float value : x) {
    low = std::max(low, -static_cast<double>(value));
    high = std::max(high, static_cast<double>(value));
  }
  const int32_t last = type.levels() - 1;
  const int32_t middle = type.is_signed ? -type.qmin() : (type.qmax() + 1) / 2;
  const bool symmetric = scheme == QScheme::kSymmetric;
  double best = std::numeric_limits<double>::infinity();
  for (int32_t below = symmetric ? middle : 0; below <= (symmetric ? middle : last); ++below) {
    for (int i = 1; i <= 2000; ++i) {
      double step = 2.2 * (symmetric ? 2.0 * std::max(low, high) : low + high) *
                    static_cast<double>(i) / 2000.0 / static_cast<double>(last);
      for (int round = 0; round < 4; ++round) {
        double error = 0.0;
        double product = 0.0;
        double squares = 0.0;
        for (const float value : x) {
          const auto real = static_cast<double>(value);
          const double code = std::clamp<double>(std::nearbyint(real / step), -below, last - below);
          error += (code * step - real) * (code * step - real);
          product += code * real;
          squares += code * code;
        }
        best = std::min(best, error);
        if (round == 0 && error > 2.0 * best) break;
        if (!(product > 0.0)) break;
        step = product / squares;
      }
    }
  }
  return best;
}

}  // namespace

TEST_CASE("a histogram finds the grid that the values lie on", "[quant][histogram]") {
  std::vector<float> halves;
  for (int i = -6; i <= 6; ++i) halves.push_back(0.5f * static_cast<float>(i));
  HistogramObserver observer;
  observer.observe(Tensor::from({13}, halves));
  const QParams params = observer.params({4, false, false}, QScheme::kAffine);
  CHECK(params.scale[0] == 0.5f);
  CHECK(params.zero_point[0] == 6);
  CHECK(error_of(halves, params) == 0.0);

  // Every n-th code of a type, with a step that is a power of two or not.
  for (const QType& type : kTypes) {
    for (const float step : {0.25f, 0.1f, 3.7f}) {
      for (const int every : {1, 2, 3}) {
        for (const int first : {0, type.levels() / 3}) {
          std::vector<float> x;
          for (int i = -first; i < type.levels() - first; i += every)
            x.push_back(step * static_cast<float>(i));
          CAPTURE(type, step, every, first);
          HistogramObserver other;
          other.observe(Tensor::from({static_cast<int64_t>(x.size())}, x));
          const double error = error_of(x, other.params(type, QScheme::kAffine));
          CHECK(error <= 1e-9 * static_cast<double>(step * step) * static_cast<double>(x.size()));
        }
      }
    }
  }
}

TEST_CASE("a histogram's range has almost the least error on few distinct values",
          "[quant][histogram][long]") {
  for (uint64_t set = 0; set < 40; ++set) {
    Random random(set);
    std::vector<float> x;
    const int64_t n = 3 + random.below(11);
    const float grid = random.uniform(0.1f, 1.0f);
    for (int64_t i = 0; i < n; ++i) {
      const float value = set % 2 == 0 ? random.uniform(-1.0f, 2.0f)
                                       : grid * static_cast<float>(random.below(17) - 8);
      x.push_back(set % 4 < 2 ? value : std::abs(value));
    }
    HistogramObserver observer;
    observer.observe(Tensor::from({n}, x));
    const auto [least, largest] = std::minmax_element(x.begin(), x.end());
    const double span = std::max(*largest, 0.0f) - std::min(*least, 0.0f);
    for (const QType& type : std::vector<QType>{
             {4, false, false}, {4, true, true}, {3, false, false}, {2, false, false}}) {
      for (const QScheme scheme : kSchemes) {
        CAPTURE(set, type, scheme, x);
        const double ours = error_of(x, observer.params(type, scheme));
        const double best = least_error(x, type, scheme);
        const double rounding = 1e-12 * static_cast<double>(n) * span * span;  // of float32
        CHECK(ours <= 1.05 * best + rounding);
      }
    }
  }
}

TEST_CASE("a histogram's range has no larger error than the range that PyTorch chooses",
          "[quant][histogram][vectors][long]") {
  for (const Json& json : test::load_vectors("histograms")) {
    CAPTURE(json.at("name").get<std::string>());
    const auto observer = test::loaded_histogram(HistogramOptions{}, json);
    const Centres centres(json);
    for (const Json& choice : json.at("choices")) {
      const bool is_signed = choice.at("signed").get<bool>();
      const QType type{choice.at("bits").get<int>(), is_signed, false};
      CAPTURE(type);
      const QScheme scheme = is_signed ? QScheme::kSymmetric : QScheme::kAffine;
      const double ours = centres.error(observer->params(type, scheme));
      const double theirs = centres.error(
          type, choice.at("scale").get<float>(), choice.at("zero_point").get<int32_t>());
      CHECK(ours <= theirs);
    }
  }
}

TEST_CASE("no range in a grid of ranges has a smaller error than the chosen range",
          "[quant][histogram][serial][long]") {
  for (const Json& json : test::load_vectors("histograms")) {
    const auto name = json.at("name").get<std::string>();
    CAPTURE(name);
    if (name != "normal" && name != "ReLU of a normal" && name != "bimodal" &&
        name != "uneven sides" && name != "negative")
      continue;
    const auto observer = test::loaded_histogram(HistogramOptions{}, json);
    const Centres centres(json);
    const auto min = json.at("min").get<float>();
    const auto max = json.at("max").get<float>();
    for (const QType& type : kTypes) {
      for (const QScheme scheme : kSchemes) {
        CAPTURE(type, scheme);
        const double ours = centres.error(observer->params(type, scheme));
        CHECK(ours <= centres.error(Range{min, max}, type, scheme));
        // A symmetric range has only one end to vary, so its grid can have more steps.
        const int ends =
            (scheme == QScheme::kAffine ? 32 : 512) / (quantrain::test::kSanitized ? 4 : 1);
        double best = std::numeric_limits<double>::infinity();
        for (int low = 0; low <= (scheme == QScheme::kAffine && min < 0.0f ? ends : 0); ++low) {
          for (int high = 0; high <= ends; ++high) {
            const auto part = [&](int i, float end) {
              return static_cast<float>(i) / static_cast<float>(ends) * end;
            };
            Range range{part(low, std::min(min, 0.0f)), part(high, std::max(max, 0.0f))};
            if (scheme == QScheme::kSymmetric) range.max = part(high, std::max(-min, max));
            best = std::min(best, centres.error(range, type, scheme));
          }
        }
        CHECK(ours <= best * (1.0 + kDips));
      }
    }
  }
}

TEST_CASE("a histogram's range quantizes the observed values with less error than their full range",
          "[quant][histogram]") {
  // 4 of 20,000 values lie at 10 sigma: few enough to be cut off with 4 bits.
  Tensor x = normal(20000, 1.0f);
  for (int64_t i = 0; i < 4; ++i) x.mutable_data()[1000 * i] = i % 2 == 0 ? 10.0f : -10.0f;
  HistogramObserver observer;
  observer.observe(x);
  const auto error = [&](const QParams& params) {
    double sum = 0.0;
    for (int64_t i = 0; i < x.elements(); ++i) {
      const int32_t code = quantize(x.data()[i],
                                    params.scale[0],
                                    params.zero_point[0],
                                    params.type.qmin(),
                                    params.type.qmax());
      const double difference =
          static_cast<double>(dequantize(code, params.scale[0], params.zero_point[0])) -
          static_cast<double>(x.data()[i]);
      sum += difference * difference;
    }
    return sum;
  };
  const QType u4{4, false, false};
  const QParams chosen = observer.params(u4, QScheme::kAffine);
  const QParams extremes = choose_params(std::array{Range{-10, 10}}, -1, u4, QScheme::kAffine, "");
  CHECK(error(chosen) < error(extremes));
  // 16 bits have more codes than there are bins, so nothing is cut off.
  CHECK(observer.ranges({16, false, false}, QScheme::kAffine)[0] == Range{-10, 10});
  // The range depends on the number of bits: with 8 bits, less is cut off than with 4 bits.
  CHECK(observer.ranges({8, false, false}, QScheme::kAffine)[0].max > chosen.float_range().max);
}

TEST_CASE("exact zeros change no range", "[quant][histogram]") {
  Tensor x = normal(5000, 1.0f);
  HistogramObserver alone;
  HistogramObserver with_zeros;
  alone.observe(x);
  with_zeros.observe(x);
  with_zeros.observe(Tensor::zeros({100000}));
  for (const QType& type : kTypes)
    CHECK(alone.ranges(type, QScheme::kAffine) == with_zeros.ranges(type, QScheme::kAffine));
}

TEST_CASE("a histogram takes values of any size", "[quant][histogram]") {
  const float most = std::numeric_limits<float>::max();
  const float least = std::numeric_limits<float>::denorm_min();
  for (const std::vector<float>& values : std::vector<std::vector<float>>{{0.0f},
                                                                          {least, -least},
                                                                          {1e-38f, 2e-38f},
                                                                          {most, -most},
                                                                          {most},
                                                                          {-most, 1.0f},
                                                                          {1e30f, 1e-30f}}) {
    CAPTURE(values[0]);
    HistogramObserver observer;
    observer.observe(Tensor::from({static_cast<int64_t>(values.size())}, values));
    for (const QType& type : kTypes) {
      for (const QScheme scheme : kSchemes) CHECK_NOTHROW(observer.params(type, scheme));
    }
  }
}

TEST_CASE("each channel's range comes from its own histogram", "[quant][histogram]") {
  HistogramObserver both({}, {0, 2});
  HistogramObserver first;
  HistogramObserver second;
  for (const float size : {1.0f, 7.0f}) {
    const Tensor a = normal(3000, size, 1);
    const Tensor b = normal(3000, 0.1f / size, 2);
    Tensor x = Tensor::empty({2, 3000});
    std::copy_n(a.data(), 3000, x.mutable_data());
    std::copy_n(b.data(), 3000, x.mutable_data() + 3000);
    both.observe(x);
    first.observe(a);
    second.observe(b);
  }
  for (const QType& type : kTypes) {
    const std::vector<Range> ranges = both.ranges(type, QScheme::kAffine);
    CHECK(ranges[0] == first.ranges(type, QScheme::kAffine)[0]);
    CHECK(ranges[1] == second.ranges(type, QScheme::kAffine)[0]);
  }
}

TEST_CASE("a histogram has 64 to 65536 bins", "[quant][histogram]") {
  QUANTRAIN_CHECK_ERROR(HistogramObserver({.bins = 63}), QuantError, "bins must be 64 to 65536");
  QUANTRAIN_CHECK_ERROR(make_observer(HistogramOptions{.bins = 1 << 17}), QuantError, "131072");
}

}  // namespace quantrain::quant
