#include "examples/common/task.hpp"

#include "framework/metrics/metrics.hpp"

namespace quantrain::examples {

std::function<double(const Tensor& y)> accuracy_of(std::vector<int32_t> labels, int64_t classes) {
  return [labels = std::move(labels), classes](const Tensor& y) {
    ConfusionMatrix matrix(classes);
    matrix.add(y, labels);
    return matrix.accuracy();
  };
}

}  // namespace quantrain::examples
