// Makes common mistakes and prints the message of each; docs/guide.md says what to do.
#include <functional>
#include <iostream>
#include <limits>

#include "framework/core/error.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "shapes.hpp"
#include "training.hpp"

/// A module whose layer is a plain member, so the module does not know the layer.
class PlainMembers : public Module {
 public:
  std::string_view type() const override { return "PlainMembers"; }

 protected:
  Tensor forward(const Tensor& x) override { return linear_(x); }

 private:
  Linear linear_{256, 4};
};

/// A module with a mistake: an addition without a layer of its own or, if `twice`, a ReLU that runs
/// twice.
class Careless : public Module {
 public:
  explicit Careless(bool twice) : twice_(twice) {}
  std::string_view type() const override { return "Careless"; }

 protected:
  Tensor forward(const Tensor& x) override {
    if (!twice_) return x + (*first_)(x);
    return (*relu_)((*second_)((*relu_)((*first_)(x))));
  }

 private:
  bool twice_;
  std::shared_ptr<Linear> first_ = add("first", Linear{256, 256});
  std::shared_ptr<Linear> second_ = add("second", Linear{256, 4});
  std::shared_ptr<ReLU> relu_ = add("relu", ReLU{});
};

/// Swaps rows and columns.
class Transposed : public Module {
 public:
  std::string_view type() const override { return "Transposed"; }

 protected:
  Tensor forward(const Tensor& x) override { return transpose(x, {0, 2, 1, 3}); }
};

Tensor loss_of(Module& net, const Batch& batch) {
  return cross_entropy(net(batch.input), batch.labels);
}

int main() try {
  const Dataset data = shapes(64, 1);
  const Batch batch = data.batch(0, 64);
  const quant::QConfig int8 = quant::QConfig::int8();
  const auto mlp = [] { return Sequential{Flatten{}, Linear{256, 16}, ReLU{}, Linear{16, 4}}; };
  const auto prepared = [&] {
    Sequential net = mlp();
    quant::prepare_qat(net, batch.input, int8);
    return net;
  };

  const std::vector<std::function<void()>> mistakes{
      [&] {
        Dataset::from_floats({1, 2}, std::vector<float>{0.5f, 1.5f}, {0}, 2);
      },
      [&] {
        Dataset::from_floats({1, 2}, std::vector<float>{1000.2f, 1000.8f}, {0}, 2, {1000, 1001});
      },
      [&] {
        Sequential net{Flatten{}, Linear{255, 4}};
        net(batch.input);
      },
      [&] {
        PlainMembers net;
        Adam{net.parameters()};
      },
      [&] {
        Sequential net = mlp();
        Adam optimizer{net.parameters()};
        constexpr float kInfinity = std::numeric_limits<float>::infinity();
        net.parameters()[0].set_grad(Tensor::full({16, 256}, kInfinity));
        optimizer.step();
      },
      [&] {
        Sequential net = mlp();
        quant::prepare_qat(net, Tensor::full({1, 16, 16, 1}, 0.5f), int8);
      },
      [&] {
        Sequential net = prepared();
        quant::prepare_qat(net, batch.input, int8);
      },
      [&] {
        Sequential net{Flatten{}, Careless{false}};
        quant::prepare_qat(net, batch.input, int8);
      },
      [&] {
        Sequential net{Flatten{}, Careless{true}};
        quant::prepare_qat(net, batch.input, int8);
      },
      [&] {
        Sequential net{Transposed{}, Flatten{}, Linear{256, 4}};
        quant::prepare_qat(net, batch.input, int8);
      },
      [&] {
        Sequential net = mlp();
        quant::QConfig config = int8;
        config.layers["conv1"] = config.model;
        quant::prepare_qat(net, batch.input, config);
      },
      [&] {
        Sequential net = mlp();
        Adam optimizer{net.parameters()};
        quant::QConfig config = int8;
        config.layers["1"] = config.model;
        config.layers["1"].weight.estimator = quant::Estimator::kLearned;
        quant::prepare_qat(net, batch.input, config);
        Tensor loss = loss_of(net, batch);
        loss.backward();
        optimizer.step();
      },
      [&] {
        Sequential net = prepared();
        net.eval();
        net(batch.input);
      },
      [&] {
        Sequential net = prepared();
        const std::vector<float> pixels(256, -0.5f);
        const Dataset other = Dataset::from_floats({1, 16, 16, 1}, pixels, {0}, 4, {-1.0f, 1.0f});
        net(other.batch(0, 1).input);
      },
      [&] {
        Sequential net = mlp();
        save(net, "network.float");
        Sequential quantized = prepared();
        load(quantized, "network.float");
      },
      [&] { quant::IntegerModel::load(std::string("network.float")); },
      [&] {
        Sequential net = prepared();
        net(batch.input);
        const quant::IntegerModel model = quant::convert(net, batch.input);
        std::vector<int32_t> logits(4);
        model.run_codes(std::vector<uint8_t>(255), logits);
      },
      [&] {
        Sequential net = prepared();
        net(batch.input);
        const quant::IntegerModel model = quant::convert(net, batch.input);
        std::vector<int32_t> classes(1);
        model.classify(std::vector<float>(256, 128.0f), classes);
      },
  };
  for (const auto& mistake : mistakes) {
    try {
      mistake();
      std::cout << "a mistake caused no error\n";
      return 1;
    } catch (const Error& error) {
      std::cout << error.what() << '\n';
    }
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
