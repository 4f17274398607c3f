#include "framework/autograd/ops/distillation_loss.hpp"

#include <cmath>

#include "framework/core/error.hpp"
#include "tests/tensors.hpp"
#include "tests/vectors.hpp"

namespace quantrain {

using test::Approx;
using test::Json;
using test::to_tensor;

TEST_CASE("the loss of distillation and its gradient equal PyTorch's", "[autograd][losses]") {
  for (const Json& json : test::load_vectors("distillation", "training_methods.json")) {
    const auto temperature = json.at("temperature").get<float>();
    CAPTURE(temperature);
    Tensor student = to_tensor(json.at("student")).set_requires_grad(true);
    Tensor teacher = to_tensor(json.at("teacher")).set_requires_grad(true);
    Tensor loss = distillation_loss(student, teacher, temperature);
    CHECK(loss.shape() == Shape{});
    // The difference of two cross entropies of about 2, in float32.
    CHECK(loss.item() == Approx(json.at("loss").get<double>()).epsilon(1e-5));
    loss.backward();
    test::check_close(student.grad(), json.at("grad"), {2e-7, 2e-5});
    CHECK_FALSE(teacher.grad().defined());
  }
  const Tensor same = Tensor::from({1, 3}, std::vector<float>{1.0f, -2.0f, 30.0f});
  CHECK(distillation_loss(same, same, 3.0f).item() == 0.0f);
}

TEST_CASE("the loss of distillation refuses other shapes and temperatures", "[autograd][losses]") {
  const Tensor x = Tensor::zeros({2, 3});
  QUANTRAIN_CHECK_ERROR(distillation_loss(x, Tensor::zeros({2, 4})),
                        ShapeError,
                        "[distillation_loss] shapes differ: student [2, 3], teacher [2, 4]");
  QUANTRAIN_CHECK_ERROR(distillation_loss(Tensor::zeros({3}), Tensor::zeros({3})),
                        ShapeError,
                        "logits must be [..., C] with elements, got [3]");
  QUANTRAIN_CHECK_ERROR(distillation_loss(Tensor::zeros({0, 3}), Tensor::zeros({0, 3})),
                        ShapeError,
                        "logits must be [..., C] with elements, got [0, 3]");
  for (const float temperature : {0.0f, -1.0f, std::nanf(""), INFINITY}) {
    QUANTRAIN_CHECK_ERROR(
        distillation_loss(x, x, temperature), DataError, "expected a positive, finite number");
  }
}

}  // namespace quantrain
