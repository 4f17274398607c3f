#include <algorithm>
#include <atomic>
#include <cfenv>
#include <functional>
#include <memory>
#include <thread>

#include "framework/autograd/ops.hpp"
#include "framework/autograd/xtensor.hpp"
#include "framework/core/buffer.hpp"
#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using test::values;

std::shared_ptr<Codes> counting_codes(int64_t n, const QParams& params) {
  auto codes = std::make_shared<Codes>();
  codes->bytes = Buffer<uint8_t>(n);
  for (int64_t i = 0; i < n; ++i) codes->bytes[i] = static_cast<uint8_t>(i);
  codes->params = params;
  return codes;
}

Tensor pixels(const Shape& shape) {
  return Tensor::decoded(shape,
                         counting_codes(shape.elements(), integer::input_params({0, 1}, "test")));
}

constexpr int64_t kMany = int64_t{1} << 20;

/// Whether the call allocates memory for kMany floats and keeps it.
bool allocates_floats(const std::function<void()>& call) {
  const int64_t before = pool::counters().bytes_in_use;
  call();
  return pool::counters().bytes_in_use - before >= kMany * int64_t{sizeof(float)};
}

}  // namespace

TEST_CASE("decoded floats are the values that the codes represent", "[autograd][source_codes]") {
  const Tensor x = pixels({256});
  CHECK(x.kind() == ValueKind::kFloat);
  for (int64_t i = 0; i < 256; ++i) CHECK(x.data()[i] == static_cast<float>(i) / 255.0f);
  const QParams params = integer::input_params({-1.0f, 3.0f}, "test");
  const Tensor y = Tensor::decoded({256}, counting_codes(256, params));
  for (int64_t i = 0; i < 256; ++i)
    CHECK(y.data()[i] == params.scale[0] * static_cast<float>(i - params.zero_point[0]));
}

TEST_CASE("the first read dequantizes the codes, and tensors that share them read the same floats",
          "[autograd][source_codes]") {
  using Read = std::function<const float*(Tensor&)>;
  const std::vector<Read> reads{[](Tensor& x) { return x.data(); },
                                [](Tensor& x) { return x.floats().owner()->data(); },
                                [](Tensor& x) { return x.mutable_data(); },
                                [](Tensor& x) { return as_array(x).data(); },
                                [](Tensor& x) { return as_const_array(x).data(); }};
  for (const Read& read : reads) {
    Tensor x;
    Tensor shared;
    Tensor shaped;
    const float* floats = nullptr;
    const bool made_floats = allocates_floats([&] {
      x = pixels({kMany});
      shared = x.detach();
      shaped = TensorAccess::with_shape(x, {2, kMany / 2});
    });
    const bool read_made_floats = allocates_floats([&] { floats = read(shared); });
    CHECK_FALSE(made_floats);
    CHECK(read_made_floats);
    CHECK(floats[255] == 1.0f);
    for (const Tensor& tensor : {x, shared, shaped}) CHECK(tensor.data() == floats);
  }
}

TEST_CASE("several threads may read source codes as floats at once", "[autograd][source_codes]") {
  const Tensor x = pixels({2, kMany / 2});
  const Tensor other = x.detach();
  std::vector<const float*> seen(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < seen.size(); ++i)
    threads.emplace_back([&, i] { seen[i] = i % 2 == 0 ? x.data() : other.data(); });
  for (std::thread& thread : threads) thread.join();
  CHECK(seen == std::vector<const float*>(4, x.data()));
  CHECK(x.data()[kMany - 1] == 1.0f);
}

TEST_CASE("source codes are dequantized in the default rounding mode", "[autograd][source_codes]") {
  const QParams params = integer::input_params({-1.0f, 3.0f}, "test");
  const Tensor x = Tensor::decoded({256}, counting_codes(256, params));
  const Tensor y = Tensor::decoded({256}, counting_codes(256, params));
  std::fesetround(FE_UPWARD);
  x.data();
  std::fesetround(FE_TONEAREST);
  CHECK(values(x) == values(y));
}

TEST_CASE("a detached or reshaped tensor keeps its source codes", "[autograd][source_codes]") {
  const Tensor x = pixels({2, 6});
  const auto codes = x.source_codes();
  REQUIRE(codes != nullptr);
  CHECK(x.detach().source_codes() == codes);
  CHECK(TensorAccess::as_floats(x).source_codes() == codes);
  CHECK(TensorAccess::with_shape(x, {12}).source_codes() == codes);
  const Tensor shared = x.detach();
  CHECK(shared.data() == x.data());
  CHECK(Tensor::zeros({2}).source_codes() == nullptr);
  CHECK(Tensor::from_codes({2, 6}, codes).source_codes() == nullptr);
  CHECK(mul(x, Tensor::full({1}, 1.0f)).source_codes() == nullptr);
  CHECK_THROWS_AS(Tensor().source_codes(), GraphError);
}

TEST_CASE("a write through any tensor that shares the floats drops the codes",
          "[autograd][source_codes]") {
  Tensor x = pixels({2, 6});
  Tensor other = x.detach();
  const Tensor shaped = TensorAccess::with_shape(x, {3, 4});
  SECTION("through the tensor itself") { x.mutable_data(); }
  SECTION("through a detached tensor") { other.mutable_data(); }
  SECTION("through a reshaped tensor") { as_array(shaped); }
  for (const Tensor& tensor : {x, other, shaped, other.detach(), TensorAccess::with_shape(x, {12})})
    CHECK(tensor.source_codes() == nullptr);
}

TEST_CASE("codes with features are dropped if a new shape changes the length of the last axis",
          "[autograd][source_codes]") {
  const auto codes = counting_codes(12, integer::input_params({0, 1}, "test"));
  codes->features =
      std::make_shared<const integer::InputFeatures>(integer::InputFeatures{{0, 0, 0}, {1, 1, 1}});
  const Tensor x = Tensor::decoded({2, 2, 3}, codes);
  CHECK(TensorAccess::with_shape(x, {4, 3}).source_codes() == codes);
  const Tensor mixed = TensorAccess::with_shape(x, {2, 6});
  CHECK(mixed.source_codes() == nullptr);
  CHECK(mixed.data() == x.data());
  CHECK(x.source_codes() == codes);
  QUANTRAIN_CHECK_ERROR(Tensor::decoded({3, 4}, codes), QuantError, "for each of the 4");
}

TEST_CASE("codes have the same meaning if their parameters and features are equal",
          "[autograd][source_codes]") {
  const auto with = [](Range range, std::vector<float> offset) {
    const auto codes = counting_codes(2, integer::input_params(range, "test"));
    if (!offset.empty())
      codes->features = std::make_shared<const integer::InputFeatures>(
          integer::InputFeatures{std::move(offset), {1, 1}});
    return codes;
  };
  const auto a = with({0, 1}, {});
  CHECK(a->same_meaning(*with({0, 1}, {})));
  CHECK_FALSE(a->same_meaning(*with({0, 2}, {})));
  CHECK_FALSE(a->same_meaning(*with({0, 1}, {0, 0})));
  CHECK_FALSE(with({0, 1}, {0, 0})->same_meaning(*a));
  CHECK(with({0, 1}, {0, 0})->same_meaning(*with({0, 1}, {0, 0})));
  CHECK_FALSE(with({0, 1}, {0, 0})->same_meaning(*with({0, 1}, {0, 1})));
}

TEST_CASE("operations give the same bits and gradients for decoded as for plain floats",
          "[autograd][source_codes]") {
  Tensor x = pixels({2, 6});
  Tensor plain = Tensor::from({2, 6}, values(x));
  const Tensor w = test::random_tensor({3, 6}, 3);
  for (Tensor* each : {&x, &plain}) {
    each->set_requires_grad(true);
    mean(relu(linear(*each, w, Tensor()))).backward();
  }
  CHECK(values(linear(x, w, Tensor())) == values(linear(plain, w, Tensor())));
  CHECK(values(x.grad()) == values(plain.grad()));
}

TEST_CASE("only input codes can be decoded", "[autograd][source_codes]") {
  const auto codes = counting_codes(4, {{.bits = 8}, 0, {0.1f, 0.2f}, {0, 0}});
  QUANTRAIN_CHECK_ERROR(Tensor::decoded({2, 2}, codes), QuantError, "u8 with one scale");
  const auto weights = counting_codes(4, {{.bits = 8, .is_signed = true}, -1, {0.1f}, {0}});
  weights->storage = CodeStorage::kS8;
  QUANTRAIN_CHECK_ERROR(Tensor::decoded({2, 2}, weights), QuantError, "are not an input's codes");
  QUANTRAIN_CHECK_ERROR(Tensor::decoded({5}, weights), ShapeError, "4 codes do not fill shape [5]");
}

TEST_CASE("threads that read the floats of one quantized tensor get the same ones",
          "[autograd][source_codes]") {
  for (int i = 0; i < 20; ++i) {
    auto codes = std::make_shared<Codes>();
    codes->bytes = Buffer<uint8_t>(1000);
    codes->params = {{.bits = 8}, -1, {0.5f}, {3}};
    for (int64_t k = 0; k < 1000; ++k) codes->bytes[k] = static_cast<uint8_t>(k);
    const Tensor x = Tensor::from_codes({1000}, std::move(codes));
    std::atomic<int> begun = 0;
    std::vector<const float*> seen(4);
    std::vector<float> fifth(4);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < seen.size(); ++t) {
      threads.emplace_back([&, t] {
        ++begun;
        while (begun < 4) std::this_thread::yield();
        seen[t] = x.data();
        fifth[t] = x.floats()[5];
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(std::count(seen.begin(), seen.end(), x.data()) == 4);
    CHECK(fifth == std::vector<float>(4, 1.0f));
  }
}

}  // namespace quantrain
