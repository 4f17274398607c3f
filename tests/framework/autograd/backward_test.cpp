#include <concepts>
#include <sstream>

#include "framework/autograd/graph.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "tests/sanitized.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using test::make_leaf;
using test::make_tensor;
using test::values;

// Number of nodes. A recursion this deep would overflow the stack. With sanitizers, fewer nodes
// suffice.
constexpr int kDeep = test::kSanitized ? 40000 : 200000;

// The identity: y = x. Its backward() appends the node's name to a list.
class WitnessNode : public Node {
 public:
  WitnessNode(int name, std::vector<int>& order) : name_(name), order_(order) {}
  std::string_view type() const override { return "witness"; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    order_.push_back(name_);
    return {grad_y};
  }

 private:
  int name_;
  std::vector<int>& order_;
};

Tensor witness(const Tensor& x, int name, std::vector<int>& order) {
  return record<WitnessNode>(x.detach(), {x}, name, order);
}

// An operation that returns the gradients it was constructed with.
class BrokenNode : public Node {
 public:
  explicit BrokenNode(std::vector<Tensor> grads) : grads_(std::move(grads)) {}
  std::string_view type() const override { return "broken"; }
  std::vector<Tensor> backward(Tensor) override { return grads_; }

 private:
  std::vector<Tensor> grads_;
};

Tensor chain(const Tensor& x, int nodes) {
  const Tensor one = Tensor::full({1}, 1.0f);
  Tensor y = x;
  for (int i = 0; i < nodes; ++i) y = add(y, one);
  return y;
}

}  // namespace

TEST_CASE("backward visits consumers before producers, in reverse order of recording",
          "[autograd][backward]") {
  std::vector<int> order;
  const Tensor x = make_leaf({1}, {1});
  const Tensor a = witness(x, 0, order);
  const Tensor b = witness(a, 1, order);
  const Tensor c = witness(a, 2, order);
  const Tensor d = witness(c, 3, order);
  add(d, b).backward();
  CHECK(order == std::vector<int>{3, 2, 1, 0});
  CHECK(x.grad().item() == 2.0f);
}

TEST_CASE("gradients of a diamond add up, and each node is visited once", "[autograd][backward]") {
  const Tensor x = make_leaf({1}, {1.5f});
  Tensor y = x;
  for (int i = 0; i < 40; ++i) y = add(y, y);  // 2^40 paths
  y.backward();
  CHECK(x.grad().item() == 0x1p40f);
}

TEST_CASE("a leaf that is used twice gets the sum of both gradients", "[autograd][backward]") {
  const Tensor x = make_leaf({3}, {1, -2, 3});
  sum(mul(x, x) + x).backward();
  CHECK(values(x.grad()) == std::vector<float>{3, -3, 7});
}

TEST_CASE("gradients of a leaf accumulate until they are cleared", "[autograd][backward]") {
  Tensor x = make_leaf({1}, {2});
  mul(x, x).backward();
  mul(x, x).backward();
  CHECK(x.grad().item() == 8.0f);
  x.zero_grad();
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("only leaves that require a gradient get one", "[autograd][backward]") {
  const Tensor x = make_leaf({1}, {2});
  const Tensor constant = make_tensor({1}, {3});
  const Tensor y = mul(x, constant);
  Tensor z = mul(y, constant);
  z.backward();
  CHECK(x.grad().item() == 9.0f);
  CHECK_FALSE(constant.grad().defined());
  CHECK_FALSE(y.grad().defined());
}

TEST_CASE("a long chain runs backward and is freed without recursion", "[autograd][backward]") {
  const Tensor x = make_leaf({1}, {1});
  chain(x, kDeep).backward();
  CHECK(x.grad().item() == 1.0f);
  {
    const Tensor never_differentiated = chain(x, kDeep);
    CHECK(never_differentiated.item() == static_cast<float>(kDeep + 1));
  }
  {
    Tensor y = chain(x, kDeep);
    const Graph graph(y);
    CHECK(graph.nodes().size() == static_cast<size_t>(kDeep));
    y.backward(/*keep_graph=*/true);
    CHECK(x.grad().item() == 2.0f);
  }
}

TEST_CASE("a graph is freed by backward unless it is kept", "[autograd][backward]") {
  const Tensor x = make_leaf({1}, {3});
  Tensor y = mul(mul(x, x), x);
  y.backward(/*keep_graph=*/true);
  CHECK(x.grad().item() == 27.0f);
  y.backward();
  CHECK(x.grad().item() == 54.0f);
  QUANTRAIN_CHECK_ERROR(
      y.backward(),
      GraphError,
      "[mul] an earlier backward pass has freed the graph; backward(true) keeps it");
}

TEST_CASE("backward throws if the backward of another output freed a shared node",
          "[autograd][backward]") {
  const Tensor x = make_leaf({1}, {3});
  const Tensor shared = mul(x, x);
  Tensor first = add(shared, x);
  Tensor second = mul(shared, x);
  first.backward();
  const float before = x.grad().item();
  QUANTRAIN_CHECK_ERROR(
      second.backward(), GraphError, "[mul] an earlier backward pass has freed the graph");
  CHECK(x.grad().item() == before);
}

TEST_CASE("backward needs a single element with a history", "[autograd][backward]") {
  Tensor x = make_leaf({2}, {1, 2});
  QUANTRAIN_CHECK_ERROR(x.backward(), ShapeError, "needs a single element, got shape [2]");
  QUANTRAIN_CHECK_ERROR(make_leaf({1}, {1}).backward(), GraphError, "nothing was recorded");
  QUANTRAIN_CHECK_ERROR(
      sum(make_tensor({2}, {1, 2})).backward(),
      GraphError,
      "nothing was recorded that requires a gradient: compute the value from a network's "
      "parameters");
  QUANTRAIN_CHECK_ERROR(Tensor().backward(), GraphError, "the tensor is undefined");
}

TEST_CASE("backward throws if a leaf was written after it was used", "[autograd][backward]") {
  Tensor x = make_leaf({1}, {3});
  const Tensor w = make_leaf({1}, {2});
  Tensor y = add(mul(x, w), w);
  x.mutable_data()[0] = 5.0f;
  QUANTRAIN_CHECK_ERROR(y.backward(), GraphError, "[mul] input 0 was written after it was used");
  CHECK_FALSE(w.grad().defined());  // the check comes before any gradient is computed
}

TEST_CASE("a leaf gets a gradient only if it required one when it was used and still does",
          "[autograd][backward]") {
  const Tensor x = make_leaf({2}, {1, 2});
  const Tensor u = make_leaf({2}, {3, 4});
  Tensor thawed = make_tensor({2}, {5, 6});
  Tensor frozen = make_leaf({2}, {7, 8});
  Tensor y = sum(mul(sigmoid(x), thawed) + mul(u, frozen));
  thawed.set_requires_grad(true);
  frozen.set_requires_grad(false);
  y.backward();
  CHECK(x.grad().defined());
  CHECK(values(u.grad()) == std::vector<float>{7, 8});
  CHECK_FALSE(thawed.grad().defined());
  CHECK_FALSE(frozen.grad().defined());
}

TEST_CASE("backward throws if a result was written after it was recorded", "[autograd][backward]") {
  const Tensor x = make_leaf({1}, {3});
  Tensor y = sigmoid(x);
  y.mutable_data()[0] = 5.0f;
  Tensor z = mul(y, y);
  QUANTRAIN_CHECK_ERROR(z.backward(),
                        GraphError,
                        "[sigmoid] its result was written after it was recorded: write after "
                        "backward(), or to a copy");
}

TEST_CASE("backward notices a write through another handle to the same memory",
          "[autograd][backward]") {
  Tensor x = make_leaf({2}, {1, 2});
  Tensor y = sum(sigmoid(x));
  Tensor shared = y.node()->input(0).detach();
  // The gradient of sum does not read the result of sigmoid. So the node of sum holds this result
  // without its values.
  CHECK_THROWS_AS(shared.data(), GraphError);

  Tensor w = make_leaf({2}, {1, 2});
  Tensor z = sum(mul(w, w));
  Tensor same = w.detach();
  same.mutable_data()[0] = 3.0f;
  QUANTRAIN_CHECK_ERROR(
      z.backward(),
      GraphError,
      "[mul] input 0 was written after it was used: write after backward(), or to a copy");
}

TEST_CASE("values that no gradient reads are freed early, except while a Recording lives",
          "[autograd][backward]") {
  const Tensor a = make_leaf({2}, {-1, 2});
  const auto chain = [&] { return sum(relu(mul(a, a))); };
  const auto input_of = [](const Tensor& y) { return y.node()->input(0); };
  const Tensor y = chain();
  CHECK(input_of(y).shape() == Shape{2});
  CHECK(input_of(input_of(y)).node()->type() == "mul");
  QUANTRAIN_CHECK_ERROR(input_of(y).floats(),
                        GraphError,
                        "[tensor] the value was freed, because no gradient needs it, or a later "
                        "layer took its memory: to keep it, run the operations while a Recording "
                        "lives");
  // The gradient of mul reads this value.
  CHECK(values(input_of(input_of(input_of(y)))) == std::vector<float>{-1, 2});
  const Recording recording;
  CHECK(values(input_of(chain())) == std::vector<float>{1, 4});
}

TEST_CASE("a gradient is overwritten only if nothing else refers to it", "[autograd][backward]") {
  Tensor alone = make_tensor({2}, {1, 2});
  CHECK(TensorAccess::overwritable(alone).same_as(alone));
  const Tensor handle = alone;
  CHECK_FALSE(TensorAccess::overwritable(alone).same_as(alone));
  const Tensor detached = make_tensor({2}, {1, 2}).detach();
  CHECK(TensorAccess::overwritable(detached).same_as(detached));
  const Tensor view = TensorAccess::with_shape(detached, {1, 2});
  CHECK_FALSE(TensorAccess::overwritable(detached).same_as(detached));

  // add gives both operands the same gradient. relu masks it in place only if nothing else
  // refers to it.
  const Tensor x = make_leaf({3}, {-1, 2, 3});
  const Tensor b = make_leaf({3}, {0, 0, 0});
  sum(add(relu(mul(x, x)), relu(add(relu(x), b)))).backward();
  CHECK(values(x.grad()) == std::vector<float>{-2, 5, 7});
  CHECK(values(b.grad()) == std::vector<float>{0, 1, 1});
}

TEST_CASE("writing to the gradient of a leaf changes no other gradient", "[autograd][backward]") {
  const Tensor a = make_leaf({2}, {1, 2});
  const Tensor b = make_leaf({2}, {3, 4});
  sum(a + b).backward();
  Tensor grad = a.grad();
  grad.mutable_data()[0] = 100.0f;
  CHECK(values(b.grad()) == std::vector<float>{1, 1});

  // The forward pass of cross_entropy computes and saves the gradient for x. A write to x.grad()
  // must not change the saved gradient.
  Tensor x = make_leaf({1, 2}, {1, 1});
  Tensor loss = cross_entropy(x, std::vector<int32_t>{0});
  loss.backward(/*keep_graph=*/true);
  Tensor grad_x = x.grad();
  grad_x.mutable_data()[0] = 100.0f;
  x.zero_grad();
  loss.backward();
  CHECK(values(x.grad()) == std::vector<float>{-0.5f, 0.5f});
}

TEST_CASE("a gradient that only its leaf refers to is not copied", "[autograd][backward]") {
  const Tensor w = make_leaf({2, 3}, {1, 2, 3, 4, 5, 6});
  std::vector<const float*> made;
  class Watch : public Node {
   public:
    explicit Watch(std::vector<const float*>& made) : made_(made) {}
    std::string_view type() const override { return "watch"; }
    std::vector<Tensor> backward(Tensor grad_y) override {
      Tensor grad = Tensor::zeros(grad_y.shape());
      made_.push_back(grad.data());
      return {std::move(grad)};
    }

   private:
    std::vector<const float*>& made_;
  };
  sum(record<Watch>(w.detach(), {w}, made)).backward();
  const Tensor grad_w = w.grad();
  CHECK(grad_w.data() == made.at(0));
}

TEST_CASE("an error about wrong gradients names the operation that returned them",
          "[autograd][backward]") {
  const Tensor x = make_leaf({2}, {1, 2});
  const auto run = [&](std::vector<Tensor> grads) {
    record<BrokenNode>(Tensor::full({1}, 0.0f), {x}, std::move(grads)).backward();
  };
  QUANTRAIN_CHECK_ERROR(run({}), GraphError, "[broken] backward gave 0 gradients for 1 inputs");
  QUANTRAIN_CHECK_ERROR(run({Tensor()}), GraphError, "backward gave no gradient for input 0");
  QUANTRAIN_CHECK_ERROR(
      run({Tensor::zeros({3})}), ShapeError, "gradient of input 0 has shape [3], the input [2]");
}

TEST_CASE("an error in the middle of backward leaves no gradients in a kept graph",
          "[autograd][backward]") {
  const Tensor x = make_leaf({1}, {2});
  const Tensor a = mul(x, x);
  const Tensor broken = record<BrokenNode>(Tensor::full({1}, 0.0f), {a}, std::vector<Tensor>{});
  Tensor y = add(broken, a);
  Tensor z = add(a, a);
  CHECK_THROWS_AS(y.backward(/*keep_graph=*/true), GraphError);
  z.backward();
  CHECK(x.grad().item() == 8.0f);
}

TEST_CASE("inside NoGrad, results require no gradient and have no history", "[autograd][node]") {
  const Tensor x = make_leaf({1}, {2});
  {
    const NoGrad no_grad;
    CHECK_FALSE(mul(x, x).requires_grad());
    CHECK(mul(x, x).node() == nullptr);
    const NoGrad nested;
  }
  CHECK(mul(x, x).requires_grad());
}

TEST_CASE("inside Recording, every result has a history, with or without gradients",
          "[autograd][node]") {
  const Tensor x = make_leaf({1}, {2});
  const Tensor constant = make_tensor({1}, {2});
  CHECK(mul(constant, constant).node() == nullptr);
  {
    const Recording recording;
    CHECK(mul(constant, constant).node() != nullptr);
    CHECK_FALSE(mul(constant, constant).requires_grad());
    CHECK(mul(x, constant).requires_grad());
    const NoGrad no_grad;
    CHECK(mul(x, x).node() != nullptr);
    CHECK_FALSE(mul(x, x).requires_grad());
  }
  CHECK(mul(constant, constant).node() == nullptr);
}

TEST_CASE("detach cuts the history and shares the value", "[autograd][tensor]") {
  const Tensor x = make_leaf({1}, {2});
  const Tensor y = mul(x, x);
  const Tensor cut = y.detach();
  CHECK(cut.node() == nullptr);
  CHECK_FALSE(cut.requires_grad());
  CHECK(cut.data() == y.data());
  mul(y, cut).backward();
  CHECK(x.grad().item() == 16.0f);  // d(y * 4) / dx
}

TEST_CASE("requires_grad of a recorded result cannot be set", "[autograd][tensor]") {
  const Tensor x = make_leaf({1}, {2});
  QUANTRAIN_CHECK_ERROR(mul(x, x).set_requires_grad(false),
                        GraphError,
                        "cannot be set: set it on a leaf, or use detach()");
}

TEST_CASE("same_as compares identity, not values, and tensors have no ==", "[autograd][tensor]") {
  static_assert(!std::equality_comparable<Tensor>);
  const Tensor x = make_tensor({2}, {1, 2});
  const Tensor handle = x;
  CHECK(x.same_as(handle));
  CHECK_FALSE(x.same_as(make_tensor({2}, {1, 2})));
  CHECK_FALSE(x.same_as(x.detach()));
  CHECK(Tensor().same_as(Tensor()));
}

TEST_CASE("item returns the only element", "[autograd][tensor]") {
  CHECK(Tensor::full({1, 1}, 3.0f).item() == 3.0f);
  CHECK(Tensor::full({}, 4.0f).item() == 4.0f);
  QUANTRAIN_CHECK_ERROR(
      Tensor::zeros({2}).item(), ShapeError, "item() needs a single element, got shape [2]");
  QUANTRAIN_CHECK_ERROR(
      Tensor::zeros({0}).item(), ShapeError, "item() needs a single element, got shape [0]");
}

TEST_CASE("a tensor checks how many values it gets", "[autograd][tensor]") {
  QUANTRAIN_CHECK_ERROR(
      make_tensor({2, 2}, {1, 2, 3}), ShapeError, "3 values do not fill shape [2, 2]");
  QUANTRAIN_CHECK_ERROR(TensorAccess::with_shape(Tensor::zeros({2, 3}), {4}), ShapeError, "[2, 3]");
  QUANTRAIN_CHECK_ERROR(Tensor().shape(), GraphError, "the tensor is undefined");
}

TEST_CASE("every write counts as a new version", "[autograd][tensor]") {
  Tensor x = Tensor::zeros({2});
  const uint64_t before = x.version();
  const Tensor same = x;
  x.mutable_data()[0] = 1.0f;
  CHECK(x.version() != before);
  CHECK(same.version() == x.version());
  x.data();
  CHECK(same.version() == x.version());
}

TEST_CASE("nodes carry the path of the scopes they were recorded in", "[autograd][node]") {
  const Tensor x = make_leaf({1}, {2});
  Tensor a, b, c;
  {
    const Scope block("block1");
    {
      const Scope layer("conv");
      a = mul(x, x);
    }
    b = mul(x, x);
  }
  c = mul(x, x);
  CHECK(a.node()->scope() == "block1.conv");
  CHECK(b.node()->scope() == "block1");
  CHECK(c.node()->scope().empty());
}

TEST_CASE("gradients and codes have to fill their tensor's shape", "[autograd][tensor]") {
  Tensor x = make_leaf({3}, {1.0f, 2.0f, 3.0f});
  const Tensor grad = make_tensor({3}, {4.0f, 5.0f, 6.0f});
  x.set_grad(grad);
  QUANTRAIN_CHECK_ERROR(
      x.set_grad(Tensor::zeros({2})), ShapeError, "a gradient of shape [2] does not fit shape [3]");
  CHECK(x.grad().same_as(grad));
  auto codes = std::make_shared<Codes>();
  codes->bytes = Buffer<uint8_t>(2);
  codes->params = {{.bits = 8}, -1, {1.0f}, {0}};
  QUANTRAIN_CHECK_ERROR(
      Tensor::from_codes({3}, codes), ShapeError, "2 codes do not fill shape [3]");
  QUANTRAIN_CHECK_ERROR(Tensor::from_codes({3}, nullptr), ShapeError, "0 codes do not fill");
}

TEST_CASE("attributes can be read by name and type, and printed", "[autograd][node]") {
  const Attributes attributes{{"stride", std::vector<int64_t>{1, 2}},
                              {"groups", int64_t{3}},
                              {"p", 0.5},
                              {"mode", std::string("same")}};
  CHECK(attributes.integers("stride") == std::vector<int64_t>{1, 2});
  CHECK(attributes.integer("groups") == 3);
  CHECK(attributes.real("p") == 0.5);
  CHECK(attributes.string("mode") == "same");
  QUANTRAIN_CHECK_ERROR(attributes.integer("p"), GraphError, "attribute p has another type");
  QUANTRAIN_CHECK_ERROR(attributes.real("q"), GraphError, "no attribute q");
  std::ostringstream text;
  text << attributes;
  CHECK(text.str() == "stride=[1, 2] groups=3 p=0.5 mode=same");
}

TEST_CASE("a gradient is final after the node that used it first", "[autograd][backward]") {
  Tensor a = make_leaf({1}, {2});
  Tensor b = make_leaf({1}, {3});
  Tensor c = make_leaf({1}, {5});
  a.set_name("a");
  b.set_name("b");
  c.set_name("c");
  b.set_grad(make_tensor({1}, {100}));  // of an earlier pass
  std::vector<std::pair<std::string, float>> ends;
  TensorAccess::backward(mul(mul(mul(a, b), a), c), [&](Tensor& leaf) {
    ends.emplace_back(leaf.name(), leaf.grad().item());
    leaf.zero_grad();
  });
  // a a b c: c is used last, a for the last time with b.
  CHECK(ends == std::vector<std::pair<std::string, float>>{{"c", 12}, {"a", 60}, {"b", 120}});
  CHECK_FALSE(a.grad().defined());

  const Tensor sum = add(a, b);
  const auto stop = [](Tensor&) { throw DataError("test", "stop"); };
  CHECK_THROWS_AS(TensorAccess::backward(sum, stop), DataError);
  CHECK_THROWS_AS(TensorAccess::backward(make_leaf({2}, {1, 2}), stop), ShapeError);
  CHECK_THROWS_AS(TensorAccess::backward(a, stop), GraphError);
}

TEST_CASE("attributes print lists of any number of integers", "[autograd][node]") {
  const auto print = [](const Tensor& y) {
    std::ostringstream text;
    text << y.node()->attributes();
    return text.str();
  };
  const Recording recording;
  CHECK(print(reshape(Tensor::zeros({2, 6}), {-1, 3})) == "shape=[-1, 3]");
  const std::vector<int64_t> one(5, 1);
  CHECK(print(pad(Tensor::zeros({1, 1, 1, 1, 1}), one, one)) ==
        "pads=[1, 1, 1, 1, 1, 1, 1, 1, 1, 1] value=0");
  std::ostringstream text;
  text << Attributes{{"empty", std::vector<int64_t>{}}};
  CHECK(text.str() == "empty=[]");
}

}  // namespace quantrain
