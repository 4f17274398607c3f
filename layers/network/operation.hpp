#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/autograd/node.hpp"
#include "layers/module.hpp"

// Operations by name, so that a Network can hold what a forward() computes outside of layers.
namespace quantrain {

/// Computes an operation from its attributes, which are those of its node.
using Apply = std::function<Tensor(const Attributes& attributes, const std::vector<Tensor>& x)>;

struct OperationType {
  std::string type;  ///< that of its node, such as "sub"
  Apply apply;
  InputCount inputs{};
};

/// Makes a program's own operation known, so that trace() keeps it and files can hold it:
///   register_operation({"swish", [](const Attributes& a, const std::vector<Tensor>& x) {
///                         return swish(x[0], static_cast<float>(a.real("beta")));
///                       }});
/// Type, attributes and inputs of the node must determine what it computes. Register the operation
/// before a file with it is loaded.
/// Throws: GraphError if a layer or an operation has this name, or there is no function.
void register_operation(OperationType operation);

/// The operations of quantrain that have no layer of their own, or are more general than it.
std::vector<OperationType> operation_types();

/// A layer that runs one operation on its inputs. make_layer("sub", {}) makes one.
class Operation : public Module {
 public:
  /// Throws: GraphError if there is no function.
  Operation(std::string type, Attributes attributes, Apply apply);
  /// The operation's name.
  std::string_view type() const override { return type_; }
  const Attributes& attributes() const& { return attributes_; }
  Attributes attributes() const&& { return attributes_; }

 protected:
  Tensor forward(const Tensor& x) override { return apply_(attributes_, {x}); }
  Tensor forward(const Tensor& a, const Tensor& b) override { return apply_(attributes_, {a, b}); }
  std::vector<Tensor> forward(const std::vector<Tensor>& x) override {
    return {apply_(attributes_, x)};
  }

 private:
  std::string type_;
  Attributes attributes_;
  Apply apply_;
};

}  // namespace quantrain
