#include <map>
#include <optional>

#include "framework/autograd/ops.hpp"
#include "tests/vectors.hpp"

namespace quantrain {
namespace {

using test::Json;
using test::to_tensor;

// PyTorch computed its values in double. The tolerance allows for float32 rounding in sums of up to
// a hundred terms and in exp, log and division.
constexpr test::Tolerance kFloat32{2e-6, 2e-6};

using Inputs = std::map<std::string, Tensor>;
using Operation = Tensor (*)(Inputs& x, const Json& attributes);

Size2d size(const Json& pair) { return {pair.at(0).get<int64_t>(), pair.at(1).get<int64_t>()}; }

Pool2dOptions pool_options(const Json& a) {
  return {.kernel = size(a.at("kernel")),
          .stride = size(a.at("stride")),
          .padding = size(a.at("padding")),
          .ceil_mode = a.value("ceil_mode", false),
          .count_include_pad = a.value("count_include_pad", false)};
}

Pool1dOptions signal_pool_options(const Json& a) {
  return {.kernel = a.at("kernel").get<int64_t>(),
          .stride = a.at("stride").get<int64_t>(),
          .padding = a.at("padding").get<int64_t>(),
          .ceil_mode = a.value("ceil_mode", false),
          .count_include_pad = a.value("count_include_pad", false)};
}

template <Tensor (*kOperation)(const Tensor&)>
Tensor unary(Inputs& x, const Json&) {
  return kOperation(x["x"]);
}

template <Tensor (*kOperation)(const Tensor&, const Tensor&)>
Tensor binary(Inputs& x, const Json&) {
  return kOperation(x["a"], x["b"]);
}

const std::map<std::string, Operation> kOperations{
    {"add", [](Inputs& x, const Json&) { return x["a"] + x["b"]; }},
    {"sub", binary<sub>},
    {"mul", binary<mul>},
    {"div", binary<div>},
    {"matmul", binary<matmul>},
    {"relu", [](Inputs& x, const Json&) { return relu(x["x"]); }},
    {"relu6", [](Inputs& x, const Json&) { return relu6(x["x"]); }},
    {"sigmoid", unary<sigmoid>},
    {"tanh", unary<tanh>},
    {"hard_sigmoid", unary<hard_sigmoid>},
    {"hard_swish", unary<hard_swish>},
    {"silu", unary<silu>},
    {"gelu", unary<gelu>},
    {"leaky_relu",
     [](Inputs& x, const Json& a) { return leaky_relu(x["x"], a.at("slope").get<float>()); }},
    {"elu", [](Inputs& x, const Json& a) { return elu(x["x"], a.at("alpha").get<float>()); }},
    {"exp", unary<quantrain::exp>},
    {"square", unary<square>},
    {"abs", unary<quantrain::abs>},
    {"clamp",
     [](Inputs& x, const Json& a) {
       return clamp(x["x"], a.at("low").get<float>(), a.at("high").get<float>());
     }},
    {"prelu", [](Inputs& x, const Json&) { return prelu(x["x"], x["slope"]); }},
    {"softmax", unary<softmax>},
    {"log_softmax", unary<log_softmax>},
    {"flatten", unary<flatten>},
    {"global_avg_pool2d", unary<global_avg_pool2d>},
    {"global_max_pool2d", unary<global_max_pool2d>},
    {"global_avg_pool1d", unary<global_avg_pool1d>},
    {"global_max_pool1d", unary<global_max_pool1d>},
    {"sum",
     [](Inputs& x, const Json& a) {
       return a.empty() ? sum(x["x"])
                        : sum(x["x"], a.at("axis").get<int>(), a.at("keepdim").get<bool>());
     }},
    {"mean",
     [](Inputs& x, const Json& a) {
       return a.empty() ? mean(x["x"])
                        : mean(x["x"], a.at("axis").get<int>(), a.at("keepdim").get<bool>());
     }},
    {"reshape",
     [](Inputs& x, const Json& a) {
       return reshape(x["x"], std::span<const int64_t>(a.at("shape").get<std::vector<int64_t>>()));
     }},
    {"transpose",
     [](Inputs& x, const Json& a) {
       return transpose(x["x"], a.at("perm").get<std::vector<int>>());
     }},
    {"pad",
     [](Inputs& x, const Json& a) {
       return pad(x["x"],
                  a.at("before").get<std::vector<int64_t>>(),
                  a.at("after").get<std::vector<int64_t>>(),
                  a.at("value").get<float>());
     }},
    {"slice",
     [](Inputs& x, const Json& a) {
       const auto place = [&](const char* name) {
         return a.contains(name) ? std::optional(a.at(name).get<int64_t>()) : std::nullopt;
       };
       const SliceOptions options{
           .begin = place("begin"), .end = place("end"), .step = place("step").value_or(1)};
       return slice(x["x"], a.at("axis").get<int>(), options);
     }},
    {"upsample_nearest",
     [](Inputs& x, const Json& a) { return upsample_nearest(x["x"], size(a.at("scale"))); }},
    {"concat",
     [](Inputs& x, const Json& a) {
       return concat({x["a"], x["b"]}, a.at("axis").get<int>());
     }},
    {"linear", [](Inputs& x, const Json&) { return linear(x["x"], x["weight"], x["bias"]); }},
    {"conv2d",
     [](Inputs& x, const Json& a) {
       return conv2d(x["x"],
                     x["weight"],
                     x["bias"],
                     {.stride = size(a.at("stride")),
                      .padding = size(a.at("padding")),
                      .groups = a.at("groups").get<int64_t>(),
                      .dilation = a.contains("dilation") ? size(a.at("dilation")) : 1});
     }},
    {"conv1d",
     [](Inputs& x, const Json& a) {
       return conv1d(x["x"],
                     x["weight"],
                     x["bias"],
                     {.stride = a.at("stride").get<int64_t>(),
                      .padding = a.at("padding").get<int64_t>(),
                      .groups = a.at("groups").get<int64_t>(),
                      .dilation = a.at("dilation").get<int64_t>()});
     }},
    {"max_pool1d",
     [](Inputs& x, const Json& a) { return max_pool1d(x["x"], signal_pool_options(a)); }},
    {"avg_pool1d",
     [](Inputs& x, const Json& a) { return avg_pool1d(x["x"], signal_pool_options(a)); }},
    {"max_pool2d", [](Inputs& x, const Json& a) { return max_pool2d(x["x"], pool_options(a)); }},
    {"avg_pool2d", [](Inputs& x, const Json& a) { return avg_pool2d(x["x"], pool_options(a)); }},
    {"batch_norm",
     [](Inputs& x, const Json& a) {
       return batch_norm(x["x"],
                         x["gamma"],
                         x["beta"],
                         x["running_mean"],
                         x["running_variance"],
                         {.momentum = a.at("momentum").get<float>(),
                          .epsilon = a.at("epsilon").get<float>(),
                          .training = a.at("training").get<bool>()});
     }},
    {"cross_entropy",
     [](Inputs& x, const Json& a) {
       if (x.contains("target")) return cross_entropy(x["x"], x["target"]);
       const auto labels = a.at("labels").get<std::vector<int32_t>>();
       if (!a.contains("label_smoothing")) return cross_entropy(x["x"], labels);
       return cross_entropy(x["x"],
                            labels,
                            {.label_smoothing = a.at("label_smoothing").get<float>(),
                             .class_weights = a.value("class_weights", std::vector<float>())});
     }},
    {"binary_cross_entropy_with_logits",
     [](Inputs& x, const Json&) { return binary_cross_entropy_with_logits(x["x"], x["target"]); }},
    {"huber_loss",
     [](Inputs& x, const Json& a) {
       return huber_loss(x["x"], x["target"], a.at("delta").get<float>());
     }},
    {"l1_loss", [](Inputs& x, const Json&) { return l1_loss(x["x"], x["target"]); }},
    {"mse_loss", [](Inputs& x, const Json&) { return mse_loss(x["x"], x["target"]); }},
};

}  // namespace

TEST_CASE("operations and their gradients equal PyTorch's", "[autograd][pytorch]") {
  Json cases = test::load_vectors("operations");
  for (const Json& c : test::load_vectors("operations", "signals.json")) cases.push_back(c);
  std::map<std::string, int> seen;
  for (const Json& c : cases) {
    const auto op = c.at("op").get<std::string>();
    CAPTURE(op, ++seen[op], c.at("attributes").dump());
    Inputs inputs;
    for (const auto& [name, value] : c.at("inputs").items()) {
      inputs[name] = to_tensor(value).set_requires_grad(c.at("grads").contains(name));
    }
    const Tensor y = kOperations.at(op)(inputs, c.at("attributes"));
    test::check_close(y, c.at("y"), kFloat32);
    sum(mul(y, to_tensor(c.at("grad_y")))).backward();
    for (const auto& [name, value] : c.at("grads").items()) {
      CAPTURE(name);
      test::check_close(inputs.at(name).grad(), value, kFloat32);
    }
    if (!c.contains("after")) continue;
    for (const auto& [name, value] : c.at("after").items()) {
      CAPTURE(name);
      test::check_close(inputs.at(name), value, kFloat32);
    }
  }
  CHECK(seen.size() == kOperations.size());
}

}  // namespace quantrain
