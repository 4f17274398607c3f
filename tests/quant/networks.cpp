#include "tests/quant/networks.hpp"

#include "framework/autograd/ops.hpp"

namespace quantrain::quant::test {

void train_a_little(Module& net, const Shape& batch, int steps, int64_t classes) {
  train_a_little(net, std::vector<Shape>{batch}, steps, classes);
}

void train_a_little(Module& net, const std::vector<Shape>& batches, int steps, int64_t classes) {
  net.train();
  for (int step = 0; step < steps; ++step) {
    std::vector<Tensor> x;
    for (const Shape& batch : batches)
      x.push_back(random_images(batch, 100 + static_cast<uint64_t>(step) + 1000 * x.size()));
    std::vector<int32_t> labels;
    for (int64_t i = 0; i < batches[0][0]; ++i)
      labels.push_back(static_cast<int32_t>((i * 7 + step) % classes));
    net.zero_grad();
    const std::vector<Tensor> y = net(x);
    Tensor loss = cross_entropy(y[0], labels);
    for (size_t i = 1; i < y.size(); ++i) loss = add(loss, mean(mul(y[i], y[i])));
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
