#include "layers/network/operation.hpp"

#include <limits>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

using Inputs = std::vector<Tensor>;
constexpr InputCount kTwo{2, 2};
constexpr InputCount kProduct{2, 3};  // the bias may be missing

int to_int(const Attributes& a, std::string_view name, int64_t value) {
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    throw GraphError("operation", "attribute ", name, " is ", value, ", beyond 32 bits: ", a);
  return static_cast<int>(value);
}

int axis_of(const Attributes& a) { return to_int(a, "axis", a.integer("axis")); }

Size2d size(const Attributes& a, std::string_view name) {
  const std::vector<int64_t>& list = a.integers(name);
  if (list.size() != 2) throw GraphError("operation", "attribute ", name, " is not two numbers");
  return {list[0], list[1]};
}

int64_t one(const Attributes& a, std::string_view name) {
  const std::vector<int64_t>& list = a.integers(name);
  if (list.size() != 1) throw GraphError("operation", "attribute ", name, " is not one number");
  return list[0];
}

std::vector<int> axes_of(const Attributes& a, std::string_view name) {
  std::vector<int> axes;
  for (const int64_t axis : a.integers(name)) axes.push_back(to_int(a, name, axis));
  return axes;
}

Tensor bias_of(const Inputs& x) { return x.size() > 2 ? x[2] : Tensor(); }

/// sum() or mean() over one axis or, if all are listed, over all.
template <class Reduce, class ReduceAll>
Tensor reduced(const Attributes& a, const Tensor& x, const Reduce& one, const ReduceAll& all) {
  const std::vector<int> axes = axes_of(a, "axes");
  const bool keeps = a.integer("keepdims") != 0;
  if (axes.size() == 1 && (keeps || x.rank() > 1)) return one(x, axes[0], keeps);
  if (static_cast<int>(axes.size()) != x.rank() || keeps)
    throw GraphError("operation", "reduces one axis or all axes of ", x.shape(), ": ", a);
  return all(x);
}

Tensor run_pad(const Attributes& a, const Inputs& x) {
  const std::vector<int64_t>& pads = a.integers("pads");
  const auto half = static_cast<std::ptrdiff_t>(pads.size() / 2);
  const std::vector<int64_t> before(pads.begin(), pads.begin() + half);
  const std::vector<int64_t> after(pads.begin() + half, pads.end());
  return pad(x[0], before, after, static_cast<float>(a.real("value")));
}

Tensor run_conv2d(const Attributes& a, const Inputs& x) {
  return conv2d(x[0],
                x[1],
                bias_of(x),
                {.stride = size(a, "stride"),
                 .padding = size(a, "padding"),
                 .groups = a.integer("groups"),
                 .dilation = size(a, "dilation")});
}

Tensor run_conv1d(const Attributes& a, const Inputs& x) {
  return conv1d(x[0],
                x[1],
                bias_of(x),
                {.stride = one(a, "stride"),
                 .padding = one(a, "padding"),
                 .groups = a.integer("groups"),
                 .dilation = one(a, "dilation")});
}

}  // namespace

Operation::Operation(std::string type, Attributes attributes, Apply apply)
    : type_(std::move(type)), attributes_(std::move(attributes)), apply_(std::move(apply)) {
  if (apply_ == nullptr) throw GraphError(type_, "the operation has no function");
}

std::vector<OperationType> operation_types() {
  using A = const Attributes&;
  using X = const Inputs&;
  return {
      {"add", [](A, X x) { return add(x); }, InputCount::any()},
      {"concat", [](A a, X x) { return concat(x, axis_of(a)); }, InputCount::any()},
      {"conv1d", run_conv1d, kProduct},
      {"conv2d", run_conv2d, kProduct},
      {"div", [](A, X x) { return div(x[0], x[1]); }, kTwo},
      {"linear", [](A, X x) { return linear(x[0], x[1], bias_of(x)); }, kProduct},
      {"log_softmax", [](A, X x) { return log_softmax(x[0]); }},
      {"matmul", [](A, X x) { return matmul(x[0], x[1]); }, kTwo},
      {"mean",
       [](A a, X x) {
         return reduced(
             a,
             x[0],
             [](const Tensor& t, int axis, bool keeps) { return mean(t, axis, keeps); },
             [](const Tensor& t) { return mean(t); });
       }},
      {"mul", [](A, X x) { return mul(x[0], x[1]); }, kTwo},
      {"pad", run_pad},
      {"prelu", [](A, X x) { return prelu(x[0], x[1]); }, kTwo},
      {"reshape", [](A a, X x) { return reshape(x[0], a.integers("shape")); }},
      {"sub", [](A, X x) { return sub(x[0], x[1]); }, kTwo},
      {"sum",
       [](A a, X x) {
         return reduced(
             a,
             x[0],
             [](const Tensor& t, int axis, bool keeps) { return sum(t, axis, keeps); },
             [](const Tensor& t) { return sum(t); });
       }},
      {"take", [](A a, X x) { return take(x[0], axis_of(a), a.integers("indices")); }},
      {"transpose", [](A a, X x) { return transpose(x[0], axes_of(a, "perm")); }},
  };
}

}  // namespace quantrain
