// A small residual network. What is converted to integers is the graph that it records, so branches
// need no care.
#include "examples/common/program.hpp"
#include "layers/layers.hpp"

using namespace quantrain;

namespace {

/// y = relu(x + norm(conv(relu(norm(conv(x)))))), shapes unchanged.
class Residual : public Module {
 public:
  explicit Residual(int64_t channels)
      : branch_(add("branch",
                    Sequential{
                        Conv2d{channels, channels, {.kernel = 3, .padding = 1, .bias = false}},
                        BatchNorm2d{channels},
                        ReLU{},
                        Conv2d{channels, channels, {.kernel = 3, .padding = 1, .bias = false}},
                        BatchNorm2d{channels},
                    })),
        sum_(add("sum", Add{})),
        relu_(add("relu", ReLU{})) {}

  std::string_view type() const override { return "Residual"; }

 protected:
  Tensor forward(const Tensor& x) override { return (*relu_)((*sum_)((*branch_)(x), x)); }

 private:
  std::shared_ptr<Sequential> branch_;
  std::shared_ptr<Add> sum_;
  std::shared_ptr<ReLU> relu_;
};

}  // namespace

int main(int argc, char** argv) {
  const examples::Program program{
      .name = "mnist_resnet",
      .description =
          "Trains a residual network on images of digits or clothes and converts it to integers.",
      .defaults = {},
  };
  return examples::run(argc, argv, program, [] {
    return Sequential{
        Conv2d{
            1, 16, {.kernel = 3, .stride = 2, .padding = 1, .bias = false}},  // [N, 28, 28, 1] ->
                                                                              // [N, 14, 14, 16]
        BatchNorm2d{16},
        ReLU{},
        Residual{16},
        Conv2d{
            16, 32, {.kernel = 3, .stride = 2, .padding = 1, .bias = false}},  // -> [N, 7, 7, 32]
        BatchNorm2d{32},
        ReLU{},
        Residual{32},
        GlobalAvgPool2d{},  // -> [N, 1, 1, 32]
        Flatten{},
        Linear{32, 10},
    };
  });
}
