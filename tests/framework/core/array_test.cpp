#include "framework/core/array.hpp"

#include "framework/autograd/xtensor.hpp"
#include "framework/core/error.hpp"
#include "tests/catch.hpp"

namespace quantrain {

TEST_CASE("an array shares the tensor's floats", "[core][array]") {
  const Tensor tensor = Tensor::from({2, 3}, std::vector{0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f});
  Array array = as_array(tensor);
  CHECK(array.dimension() == 2);
  CHECK(array.data() == tensor.data());
  CHECK(array(1, 0) == 3.0f);
  array(1, 2) = 7.0f;
  CHECK(tensor.data()[5] == 7.0f);
}

TEST_CASE("an array keeps its memory alive", "[core][array]") {
  Array array = as_array(Tensor::full({1000}, 2.0f));
  const Tensor other = Tensor::full({1000}, 3.0f);
  CHECK(array(999) == 2.0f);
}

TEST_CASE("xtensor expressions take arrays, and a tensor takes their values", "[core][array]") {
  const Tensor a = Tensor::from({2, 2}, std::vector{1.0f, 2.0f, 3.0f, 4.0f});
  const Tensor b = Tensor::from({2}, std::vector{10.0f, 20.0f});
  const Tensor y = as_tensor(as_array(a) * 2.0f + as_array(b));
  CHECK(y.shape() == Shape{2, 2});
  CHECK(std::vector<float>(y.data(), y.data() + 4) ==
        std::vector<float>{12.0f, 24.0f, 16.0f, 28.0f});
  CHECK(as_tensor(xt::transpose(as_array(a))).data()[1] == 3.0f);
  const Tensor means = as_tensor(xt::mean(as_array(a), 0));
  CHECK(means.shape() == Shape{2});
  CHECK(means.data()[1] == 3.0f);
  CHECK(as_tensor(xt::sum(as_array(a))).item() == 10.0f);
  xt::xarray<float> own = as_array(a);
  own(0, 0) = 9.0f;
  CHECK(a.data()[0] == 1.0f);
}

TEST_CASE("assigning an expression to an array writes the tensor", "[core][array]") {
  const Tensor tensor = Tensor::full({3}, 1.0f);
  Array array = as_array(tensor);
  xt::noalias(array) = array * 5.0f;
  CHECK(tensor.data()[2] == 5.0f);
}

TEST_CASE("scalars and empty tensors are arrays too", "[core][array]") {
  const Tensor scalar = Tensor::full({}, 4.0f);
  CHECK(as_array(scalar).dimension() == 0);
  CHECK(as_array(scalar)() == 4.0f);
  CHECK(as_tensor(as_array(scalar) + 1.0f).item() == 5.0f);
  CHECK(as_array(Tensor::zeros({0, 3})).size() == 0);
  CHECK(as_tensor(as_array(Tensor::zeros({0, 3}))).shape() == Shape{0, 3});
}

TEST_CASE("only a tensor that holds floats can be viewed as an array", "[core][array]") {
  auto codes = std::make_shared<Codes>();
  codes->bytes = Buffer<uint8_t>(1);
  codes->bytes[0] = 3;
  codes->params = {QType{8}, -1, {1.0f}, {0}};
  const Tensor tensor = Tensor::from_codes({1}, codes);
  QUANTRAIN_CHECK_ERROR(as_array(tensor), GraphError, "does not hold floats");
  QUANTRAIN_CHECK_ERROR(as_array(Tensor()), GraphError, "undefined");
}

TEST_CASE("a read-only view leaves the version and the codes unchanged", "[core][array]") {
  auto codes = std::make_shared<Codes>();
  codes->bytes = Buffer<uint8_t>(2);
  codes->bytes[0] = 51;
  codes->bytes[1] = 255;
  codes->params = {QType{8}, -1, {1.0f / 255.0f}, {0}};
  const Tensor images = Tensor::decoded({2, 1}, codes);
  const uint64_t version = images.version();
  const ConstArray view = as_const_array(images);
  CHECK(view.data() == images.data());
  CHECK(view(1, 0) == 1.0f);
  CHECK(as_tensor(view * 5.0f).data()[0] == test::Approx(1.0));
  CHECK(images.version() == version);
  CHECK(images.source_codes() == codes);
  CHECK(std::is_const_v<std::remove_reference_t<decltype(*as_const_array(images).data())>>);
  CHECK(as_const_array(Tensor::from_codes({2}, codes))(1) == 1.0f);
  const ConstArray kept = as_const_array(Tensor::full({1000}, 2.0f));
  const Tensor other = Tensor::full({1000}, 3.0f);
  CHECK(kept(999) == 2.0f);
  QUANTRAIN_CHECK_ERROR(as_const_array(Tensor()), GraphError, "undefined");
}

}  // namespace quantrain
