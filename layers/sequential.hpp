#pragma once

#include <string>
#include <utility>

#include "layers/module.hpp"

namespace quantrain {

/// Runs its children one after the other. The constructor names its arguments "0", "1", ... A batch
/// norm and the ReLU or ReLU6 after it run as one operation, with the same result.
class Sequential : public Module {
 public:
  Sequential() = default;
  /// Takes modules by value: Sequential net{Conv2d{1, 16}, ReLU{}};
  template <class... Modules>
  requires(sizeof...(Modules) > 0 &&
           (std::is_base_of_v<Module, Modules> && ...)) explicit Sequential(Modules... modules) {
    (append(std::move(modules)), ...);
  }

  std::string_view type() const override { return "Sequential"; }

  /// add(name, module): appends a named module and returns it.
  using Module::add;
  /// Appends a module, names it by its position, and returns it.
  template <class M>
  std::shared_ptr<std::decay_t<M>> append(M&& module) {
    return add(std::to_string(children().size()), std::forward<M>(module));
  }
  int64_t size() const { return static_cast<int64_t>(children().size()); }

 protected:
  Tensor forward(const Tensor& x) final { return take_forward(x); }
  Tensor take_forward(Tensor x) override;
};

}  // namespace quantrain
