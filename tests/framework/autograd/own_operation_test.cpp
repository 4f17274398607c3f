// The example of docs/adding_an_operation.md: an operation defined outside of the library.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "framework/autograd/grad_check.hpp"
#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "tests/catch.hpp"

namespace own {

using quantrain::Attributes;
using quantrain::Floats;
using quantrain::Node;
using quantrain::ShapeError;
using quantrain::Tensor;

// [node]
class PreluNode : public Node {
 public:
  std::string_view type() const override { return "prelu"; }

  std::vector<Tensor> backward(Tensor grad_y) override {
    const Floats x = input(0).floats();
    const Floats slope = input(1).floats();
    const Floats grad = grad_y.floats();
    const int64_t channels = input(1).elements();
    std::vector<Tensor> grads(2);
    if (needs_grad(0)) {
      grads[0] = Tensor::empty(grad_y.shape());
      float* const out = grads[0].mutable_data();
      for (int64_t i = 0; i < grad_y.elements(); ++i) {
        out[i] = grad[i] * (x[i] > 0.0f ? 1.0f : slope[i % channels]);
      }
    }
    if (needs_grad(1)) {
      grads[1] = Tensor::zeros(input(1).shape());
      float* const out = grads[1].mutable_data();
      for (int64_t i = 0; i < grad_y.elements(); ++i) {
        if (x[i] < 0.0f) out[i % channels] += grad[i] * x[i];
      }
    }
    return grads;
  }
};
// [node]

// [function]
/// y = x where x > 0, else slope * x.
/// Shapes: x [..., C], slope [C]  ->  y like x.
/// Gradient: grad_x = grad_y, times slope where x <= 0; grad_slope = sum of grad_y * x where x < 0.
/// Throws: ShapeError unless slope has one element for each channel.
/// Source: He et al. 2015, section 2.1; ONNX PRelu.
Tensor prelu(const Tensor& x, const Tensor& slope) {
  if (x.rank() < 1 || slope.rank() != 1 || slope.dim(0) != x.dim(-1)) {
    throw ShapeError(
        "prelu", "slope is not [C] of x [..., C]: x ", x.shape(), ", slope ", slope.shape());
  }
  Tensor y = Tensor::empty(x.shape());
  float* const out = y.mutable_data();
  const Floats in = x.floats();
  const Floats factor = slope.floats();
  for (int64_t i = 0; i < x.elements(); ++i) {
    out[i] = in[i] > 0.0f ? in[i] : factor[i % slope.elements()] * in[i];
  }
  return quantrain::record<PreluNode>(y, {x, slope});
}
// [function]

}  // namespace own

namespace quantrain {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// The text between two lines "// [name]".
std::string section(const std::string& text, const std::string& name) {
  const std::string mark = "// [" + name + "]\n";
  const size_t first = text.find(mark) + mark.size();
  return text.substr(first, text.find(mark, first) - first);
}

}  // namespace

// [test]
TEST_CASE("prelu gradient matches finite differences", "[autograd][own]") {
  const float values[] = {-2.0f, 1.5f, 0.25f, -0.75f, 3.0f, -1.0f};
  Tensor x = Tensor::from({3, 2}, values).set_requires_grad(true);
  Tensor slope = Tensor::full({2}, 0.25f).set_requires_grad(true);
  const GradCheckResult result = grad_check([&] { return own::prelu(x, slope); }, {x, slope});
  INFO(result.worst);
  CHECK(result.ok);
}
// [test]

TEST_CASE("an operation defined outside of the library is recorded and differentiated",
          "[autograd][own]") {
  const float values[] = {-2.0f, 4.0f};
  Tensor x = Tensor::from({1, 2}, values).set_requires_grad(true);
  Tensor slope = Tensor::full({2}, 0.5f).set_requires_grad(true);
  const Tensor y = own::prelu(x, slope);
  CHECK(y.data()[0] == -1.0f);
  CHECK(y.data()[1] == 4.0f);
  CHECK(y.node()->type() == "prelu");
  CHECK(own::prelu(Tensor::zeros({0, 2}), slope).elements() == 0);
  QUANTRAIN_CHECK_ERROR(own::prelu(x, Tensor::zeros({3})),
                        ShapeError,
                        "[prelu] slope is not [C] of x [..., C]: x [1, 2], slope [3]");
}

TEST_CASE("docs/adding_an_operation.md shows the code that is compiled here", "[autograd][own]") {
  const auto root = std::filesystem::path(QUANTRAIN_TEST_DATA).parent_path().parent_path();
  const std::string source = read(root / "tests/framework/autograd/own_operation_test.cpp");
  const std::string page = read(root / "docs/adding_an_operation.md");
  REQUIRE(source.size() > 1000);
  for (const char* name : {"node", "function", "test"}) {
    CAPTURE(name);
    const std::string code = section(source, name);
    CHECK(code.size() > 100);
    CHECK(page.find("```cpp\n" + code + "```\n") != std::string::npos);
  }
}

TEST_CASE("a node that holds its own result is refused unless the result is detached",
          "[autograd][own]") {
  class KeepsNode : public Node {
   public:
    explicit KeepsNode(Tensor y) : y_(std::move(y)) {}
    std::string_view type() const override { return "keeps"; }
    std::vector<Tensor> backward(Tensor grad_y) override { return {grad_y}; }

   private:
    Tensor y_;
  };
  const Tensor x = Tensor::zeros({2}).set_requires_grad(true);
  const Tensor y = Tensor::zeros({2});
  QUANTRAIN_CHECK_ERROR(quantrain::record<KeepsNode>(y, {x}, y),
                        GraphError,
                        "[keeps] the node holds its own result y: give it y.detach() instead");
  CHECK(y.node() == nullptr);
  const auto keep = [&] {
    const Tensor z = Tensor::zeros({2});
    return std::weak_ptr(quantrain::record<KeepsNode>(z, {x}, z.detach()).node());
  };
  CHECK(keep().expired());
}

}  // namespace quantrain
