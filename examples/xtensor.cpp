// xtensor expressions on tensors, for code that needs no kernel: statistics, metrics, weights from
// other sources. as_array() copies nothing: the array is a view of the tensor's floats. An
// expression is computed directly into a tensor's memory.
#include <iostream>

#include "framework/autograd/xtensor.hpp"
#include "framework/core/error.hpp"

using namespace quantrain;

int main() try {
  const float heights_and_ages[] = {160, 20, 170, 30, 180, 40, 190, 50};
  Tensor x = Tensor::from({4, 2}, heights_and_ages);

  // A tensor in an expression. Reductions are lazy; assigning one to a container computes it once.
  // (xt::eval of a reduction reads uninitialised memory in xtensor 0.24: issue 2785.)
  Array rows = as_array(x);
  const xt::xarray<float> mean = xt::mean(rows, 0);
  const xt::xarray<float> squares = xt::square(rows - mean);
  const xt::xarray<float> variance = xt::mean(squares, 0);
  const xt::xarray<float> deviation = xt::sqrt(variance);
  std::cout << "mean " << mean(0) << ' ' << mean(1) << '\n';

  // An expression as a new tensor.
  const Tensor z = as_tensor((rows - mean) / deviation);
  std::cout << "z of the first row " << z.data()[0] << ' ' << z.data()[1] << '\n';

  // Assigns an expression to an existing tensor. Allowed only before the tensor takes part in a
  // graph.
  xt::noalias(rows) = xt::maximum(rows - mean, 0.0f);
  std::cout << "above the mean " << x.data()[4] << ' ' << x.data()[5] << '\n';

  // A new tensor from the values of any container, in one pass.
  const xt::xarray<float> kernel{{1, 0}, {0, 2}};
  const Tensor weight = as_tensor(kernel);
  std::cout << "weight " << weight.shape() << " of sum " << xt::sum(as_array(weight))() << '\n';
  return rows.data() == x.data() ? 0 : 1;  // rows is a view of x
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
