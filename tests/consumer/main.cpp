#include <cstdio>

#include "framework/autograd/tensor.hpp"
#include "framework/core/version.hpp"
#include "layers/module.hpp"

namespace {

class Twice : public quantrain::Module {
 public:
  std::string_view type() const override { return "Twice"; }

 protected:
  quantrain::Tensor forward(const quantrain::Tensor& x) override {
    quantrain::Tensor y = quantrain::Tensor::empty(x.shape());
    for (int64_t i = 0; i < x.elements(); ++i) y.mutable_data()[i] = 2 * x.data()[i];
    return y;
  }
};

}  // namespace

int main() {
  Twice twice;
  const quantrain::Tensor y = twice(quantrain::Tensor::full({2, 3}, 1.5f));
  std::printf("quantrain %s\n", quantrain::version());
  return y.data()[5] == 3.0f ? 0 : 1;
}
