#pragma once

#include "layers/module.hpp"

namespace quantrain {

/// y = max(x, 0).
class ReLU : public Module {
 public:
  std::string_view type() const override { return "ReLU"; }

 protected:
  Tensor forward(const Tensor& x) override;
};

/// y = min(max(x, 0), 6).
class ReLU6 : public Module {
 public:
  std::string_view type() const override { return "ReLU6"; }

 protected:
  Tensor forward(const Tensor& x) override;
};

/// y = 1 / (1 + exp(-x)).
class Sigmoid : public Module {
 public:
  std::string_view type() const override { return "Sigmoid"; }

 protected:
  Tensor forward(const Tensor& x) override;
};

/// y = tanh(x).
class Tanh : public Module {
 public:
  std::string_view type() const override { return "Tanh"; }

 protected:
  Tensor forward(const Tensor& x) override;
};

/// y = x * min(max(x + 3, 0), 6) / 6.
class HardSwish : public Module {
 public:
  std::string_view type() const override { return "HardSwish"; }

 protected:
  Tensor forward(const Tensor& x) override;
};

}  // namespace quantrain
