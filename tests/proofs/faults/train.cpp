// file_faults FOLDER: a training run with checkpoints, a log and a page, which resumes from what is
// in the folder, and saves the network. For scripts/prove faults. Prints a line for each step. The
// exit status is 0, 3 after an Error of quantrain, 4 after any other exception.
#include <cstdio>
#include <exception>
#include <string>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/data/tensor_dataset.hpp"
#include "framework/optim/adam.hpp"
#include "layers/layers.hpp"
#include "layers/state.hpp"
#include "layers/training/fit.hpp"

namespace {

using namespace quantrain;

void train(const std::string& folder) {
  manual_seed(1);
  Sequential net{Linear{4, 5}, ReLU{}, Linear{5, 1}};
  Adam optimizer(net.parameters());
  std::vector<float> x, y;
  for (int i = 0; i < 48; ++i) x.push_back(static_cast<float>(i * i % 17) / 17.0f);
  for (int i = 0; i < 12; ++i) y.push_back(static_cast<float>(i % 3));
  DataLoader loader(TensorDataset(SampleArray::floats({12, 4}, x), SampleArray::floats({12, 1}, y)),
                    {.batch = 4, .shuffle = true});
  const auto loss = [&](Batch& batch) { return mse_loss(net(batch.input), batch.targets[0]); };
  const auto say = [](int64_t step, float) {
    std::printf("step %lld\n", static_cast<long long>(step));
    std::fflush(stdout);
  };
  fit(net,
      optimizer,
      loader,
      loss,
      {.epochs = 3,
       .after_step = say,
       .checkpoints = {.folder = folder + "/run",
                       .every = 1,
                       .keep = 2,
                       .resume = true,
                       .skip_damaged = true,
                       .run = "one"},
       .log = folder + "/log",
       .page = folder + "/page.html"});
  save(net, folder + "/model");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    quantrain::set_threads(1);
    train(argv[1]);
    return 0;
  } catch (const quantrain::Error& error) {
    std::printf("error: %s\n", error.what());
    return 3;
  } catch (const std::exception& error) {
    std::printf("untyped: %s\n", error.what());
    return 4;
  }
}
