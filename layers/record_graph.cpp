#include "layers/record_graph.hpp"

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "layers/evaluation_mode.hpp"

namespace quantrain {

void check_examples(std::string_view where, const std::vector<Tensor>& examples) {
  if (examples.empty()) throw ShapeError(where, "there is no example");
  for (size_t i = 0; i < examples.size(); ++i) {
    const Tensor& example = examples[i];
    if (!example.defined()) {
      throw GraphError(where,
                       "example ",
                       i,
                       " is undefined: give a batch [N, ...] of at least one sample, such as "
                       "dataset.batch(0, 1).input");
    }
    if (example.rank() < 2 || example.dim(0) < 1 || example.dim(0) != examples[0].dim(0)) {
      throw ShapeError(where,
                       "each example must be a batch [N, ...] of at least one sample, with at "
                       "least two axes and the same N for all examples, got ",
                       example.shape(),
                       "; the first is ",
                       examples[0].shape());
    }
  }
}

Graph record_graph(Module& net, const Tensor& example) {
  return record_graph(net, std::vector<Tensor>{example});
}

Graph record_graph(Module& net, const std::vector<Tensor>& examples) {
  check_examples("record_graph", examples);
  const EvaluationMode evaluation(net);
  const NoGrad no_grad;
  const Recording recording;
  return Graph(net(examples));
}

}  // namespace quantrain
