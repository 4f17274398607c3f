#include <memory>

#include "framework/optim/adam.hpp"
#include "framework/optim/clip.hpp"
#include "framework/optim/rmsprop.hpp"
#include "framework/optim/sgd.hpp"
#include "tests/vectors.hpp"

namespace quantrain {
namespace {

using test::Json;
using test::to_tensor;

// PyTorch computed its values in double. Here each step rounds about ten times, and a case has four
// steps.
constexpr test::Tolerance kFloat32{4e-6, 4e-6};

float option(const Json& options, const char* name) { return options.value(name, 0.0f); }

std::unique_ptr<Optimizer> make_optimizer(const std::string& kind,
                                          const Tensor& parameter,
                                          const Json& o) {
  const std::vector<Tensor> parameters{parameter};
  if (kind == "sgd") {
    return std::make_unique<Sgd>(parameters,
                                 SgdOptions{.learning_rate = option(o, "learning_rate"),
                                            .momentum = option(o, "momentum"),
                                            .weight_decay = option(o, "weight_decay"),
                                            .nesterov = o.value("nesterov", false)});
  }
  if (kind == "adam") {
    return std::make_unique<Adam>(parameters,
                                  AdamOptions{.learning_rate = option(o, "learning_rate"),
                                              .beta1 = option(o, "beta1"),
                                              .beta2 = option(o, "beta2"),
                                              .epsilon = option(o, "epsilon"),
                                              .weight_decay = option(o, "weight_decay")});
  }
  if (kind == "rmsprop") {
    return std::make_unique<RmsProp>(parameters,
                                     RmsPropOptions{.learning_rate = option(o, "learning_rate"),
                                                    .alpha = option(o, "alpha"),
                                                    .epsilon = option(o, "epsilon"),
                                                    .weight_decay = option(o, "weight_decay"),
                                                    .momentum = option(o, "momentum"),
                                                    .centered = o.value("centered", false)});
  }
  REQUIRE(kind == "adamw");
  return std::make_unique<AdamW>(parameters,
                                 AdamWOptions{.learning_rate = option(o, "learning_rate"),
                                              .beta1 = option(o, "beta1"),
                                              .beta2 = option(o, "beta2"),
                                              .epsilon = option(o, "epsilon"),
                                              .weight_decay = option(o, "weight_decay")});
}

}  // namespace

TEST_CASE("the steps of the optimizers equal PyTorch's", "[optim][pytorch]") {
  for (const Json& c : test::load_vectors("optimizers")) {
    const auto kind = c.at("optimizer").get<std::string>();
    Tensor parameter = to_tensor(c.at("parameter")).set_requires_grad(true);
    const auto optimizer = make_optimizer(kind, parameter, c.at("options"));
    for (size_t step = 0; step < c.at("gradients").size(); ++step) {
      CAPTURE(kind, c.at("options").dump(), step);
      parameter.set_grad(to_tensor(c.at("gradients")[step]));
      optimizer->step();
      test::check_close(parameter, c.at("after")[step], kFloat32);
    }
  }
}

TEST_CASE("clipping by norm equals PyTorch's", "[optim][pytorch]") {
  // PyTorch divides by norm + 1e-6. All norms here are above 1, so this changes results by less
  // than 1e-6.
  constexpr test::Tolerance kNorm{2e-6, 2e-6};
  for (const Json& c : test::load_vectors("clip")) {
    std::vector<Tensor> parameters;
    for (const Json& grad : c.at("before")) {
      const Tensor value = to_tensor(grad);
      parameters.push_back(Tensor::zeros(value.shape()).set_requires_grad(true));
      parameters.back().set_grad(value);
    }
    const float norm = clip_grad_norm(parameters, c.at("max_norm").get<float>());
    CHECK(norm == test::Approx(c.at("norm").get<double>()).epsilon(kNorm.epsilon));
    for (size_t i = 0; i < parameters.size(); ++i) {
      test::check_close(parameters[i].grad(), c.at("after")[i], kNorm);
    }
  }
}

}  // namespace quantrain
