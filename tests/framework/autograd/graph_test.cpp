#include "framework/autograd/graph.hpp"

#include <algorithm>
#include <sstream>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"

namespace quantrain {
namespace {

// A node that adds up inputs of the same shape. Real operations have tests of their own.
class TotalNode : public Node {
 public:
  explicit TotalNode(size_t inputs) : inputs_(inputs) {}
  std::string_view type() const override { return "total"; }
  Attributes attributes() const override { return {{"inputs", static_cast<int64_t>(inputs_)}}; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    return std::vector<Tensor>(inputs_, grad_y);
  }

 private:
  size_t inputs_;
};

Tensor total(const std::vector<Tensor>& inputs) {
  Tensor y = Tensor::zeros(inputs[0].shape());
  float* const out = y.mutable_data();
  for (const Tensor& x : inputs) {
    if (!x.defined()) continue;
    for (int64_t i = 0; i < y.elements(); ++i) out[i] += x.data()[i];
  }
  return record<TotalNode>(y, inputs, inputs.size());
}

Tensor named(const char* name) {
  return Tensor::full({1}, 1.0f).set_requires_grad(true).set_name(name);
}

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tensor& x, const Tensor& y) {
    return x.same_as(y);
  });
}

}  // namespace

TEST_CASE("a graph lists nodes in the order of recording with their producers and consumers",
          "[autograd][graph]") {
  const Tensor x = named("x");
  const Tensor w = Tensor::full({1}, 2.0f);
  const Tensor a = total({x, w});
  const Tensor unused = total({x});
  const Tensor b = total({a, Tensor(), a});
  const Tensor y = total({b, a});
  const Graph graph(y);

  REQUIRE(graph.nodes().size() == 3);
  CHECK(graph.node(0).output.same_as(a));
  CHECK(graph.node(1).output.same_as(b));
  CHECK(graph.node(2).output.same_as(y));
  CHECK(graph.node(0).producers == std::vector<int>{GraphNode::kLeaf, GraphNode::kLeaf});
  CHECK(graph.node(1).producers == std::vector<int>{0, GraphNode::kLeaf, 0});
  CHECK(graph.consumers(0) == std::vector<int>{1, 1, 2});
  CHECK(graph.consumers(x) == std::vector<int>{0});
  CHECK(graph.consumers(b) == std::vector<int>{2});
  CHECK(same(graph.leaves(), {x, w}));
  CHECK(graph.producer(b) == 1);
  CHECK(graph.producer(w) == GraphNode::kLeaf);
  QUANTRAIN_CHECK_ERROR(graph.producer(unused), GraphError, "is not part of the graph");
  QUANTRAIN_CHECK_ERROR(graph.producer(Tensor::zeros({3})), GraphError, "shape [3] is not part");

  std::vector<int> visited;
  graph.visit([&](const GraphNode& node) { visited.push_back(node.index); });
  CHECK(visited == std::vector<int>{0, 1, 2});
}

TEST_CASE("a graph says which nodes depend on a tensor", "[autograd][graph]") {
  const Tensor x = named("x");
  const Tensor w = named("w");
  const Tensor constant = total({w, w});
  const Tensor a = total({x, Tensor()});
  const Tensor y = total({constant, a});
  const Graph graph(y);
  CHECK(graph.dependents(x) == std::vector<bool>{false, true, true});
  CHECK(graph.dependents(w) == std::vector<bool>{true, false, true});
  CHECK(graph.dependents(a) == std::vector<bool>{false, false, true});
}

TEST_CASE("a graph of several outputs lists every node that leads to them, and only once",
          "[autograd][graph]") {
  const Tensor x = named("x");
  const Tensor a = total({x});
  const Tensor b = total({a});
  const Tensor c = total({a});
  const Graph graph(std::vector<Tensor>{c, b, x});
  CHECK(graph.nodes().size() == 3);
  CHECK(same(graph.outputs(), {c, b, x}));
  CHECK(graph.consumers(0) == std::vector<int>{1, 2});
}

TEST_CASE("a graph prints a line for each node", "[autograd][graph]") {
  const Tensor x = named("x");
  Tensor y;
  {
    const Scope block("block1");
    const Scope layer("sum");
    y = total({x, Tensor(), Tensor::zeros({1})});
  }
  y = total({y});
  std::ostringstream text;
  text << Graph(y);
  CHECK(text.str() ==
        "%0 total block1.sum (x, -, leaf1) -> [1] float inputs=3\n"
        "%1 total (%0) -> [1] float inputs=1\n");
}

TEST_CASE("Graph refuses freed nodes, and a Graph made before backward stays valid",
          "[autograd][graph]") {
  const Tensor x = named("x");
  Tensor y = total({total({x})});
  const Graph before(y);
  y.backward();
  QUANTRAIN_CHECK_ERROR(
      Graph(y), GraphError, "total was freed by a backward pass; backward(true) keeps the graph");
  CHECK(before.node(1).inputs[0].same_as(before.node(0).output));
  QUANTRAIN_CHECK_ERROR(
      before.node(1).node->inputs(),
      GraphError,
      "[total] a backward pass has freed this node's inputs; backward(true) keeps them");
  QUANTRAIN_CHECK_ERROR(before.node(1).node->needs_grad(0), GraphError, "freed this node's");
  QUANTRAIN_CHECK_ERROR(Graph(Tensor()), GraphError, "the output is undefined");
}

}  // namespace quantrain
