#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "framework/autograd/graph.hpp"
#include "layers/module.hpp"

namespace quantrain::quant {

/// Why parts of a network cannot be quantized, each reason once.
class Refusals {
 public:
  /// Keeps the exception that is being handled, an Error.
  void keep();
  void keep(const std::exception_ptr& error);
  bool empty() const { return texts_.empty(); }
  /// Throws, if there are reasons: the error itself if there is one; else an error that lists all
  /// of them, which names `where`. It is a QuantError if all are, else a GraphError.
  void throw_all(std::string_view where) const;

 private:
  std::vector<std::string> texts_;
  std::exception_ptr first_;
  bool any_other_ = false;  // an error that is no QuantError
};

/// Throws: GraphError that says that the operation changes the batch axis.
[[noreturn]] void refuse_batch_axis(const std::string& where, const GraphNode& node);

/// An operation of a prepared network that has no integer form, whatever its ranges and bits are.
struct NoIntegerForm {
  std::string layer;  ///< path of the layer that runs it
  std::exception_ptr error;
};

/// Lowers a prepared network without converting it, as plan() does, and returns the operations that
/// have no integer form. Operations that read the results of such operations are not listed again.
/// The network does not change. Empty if the ranges of the examples allow no pass.
/// prepare_qat and prepare_ptq ask for this. quant/lowering, which may include this folder, defines
/// it.
std::vector<NoIntegerForm> without_integer_form(Module& net, const std::vector<Tensor>& inputs);

}  // namespace quantrain::quant
