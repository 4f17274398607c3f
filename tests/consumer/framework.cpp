#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/data/image_folder.hpp"
#include "framework/optim/sgd.hpp"

using namespace quantrain;

namespace {

// Calls the PNG reader, so that the program links it and its dependencies.
bool finds_no_image() {
  try {
    return read_png("none.png", 1).bytes.empty();
  } catch (const DataError&) {
    return true;
  }
}

}  // namespace

// Fits y = w * x with the framework alone.
int main() {
  const Tensor x = Tensor::full({4}, 2.0f);
  const Tensor y = Tensor::full({4}, 6.0f);
  Tensor w = Tensor::zeros({1}).set_requires_grad(true);
  Sgd optimizer({w}, {.learning_rate = 0.125f});
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    mse_loss(mul(x, w), y).backward();
    optimizer.step();
  }
  return finds_no_image() && w.item() > 2.99f && w.item() < 3.01f ? 0 : 1;
}
