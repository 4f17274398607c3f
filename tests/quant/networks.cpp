#include "tests/quant/networks.hpp"

#include "framework/autograd/ops.hpp"

namespace quantrain::quant::test {

void train_a_little(Module& net, const Shape& batch, int steps, int64_t classes) {
  net.train();
  for (int step = 0; step < steps; ++step) {
    const Tensor x = random_images(batch, 100 + static_cast<uint64_t>(step));
    std::vector<int32_t> labels;
    for (int64_t i = 0; i < batch[0]; ++i)
      labels.push_back(static_cast<int32_t>((i * 7 + step) % classes));
    net.zero_grad();
    Tensor loss = cross_entropy(net(x), labels);
    loss.backward();
    for (Tensor& parameter : net.parameters()) {
      if (!parameter.grad().defined()) continue;
      const Floats grad = parameter.grad().floats();
      float* const w = parameter.mutable_data();
      for (int64_t i = 0; i < parameter.elements(); ++i) w[i] -= 0.05f * grad.data()[i];
    }
  }
}

}  // namespace quantrain::quant::test
