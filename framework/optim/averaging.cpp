#include "framework/optim/averaging.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "framework/optim/optimizer.hpp"

namespace quantrain {
namespace {

constexpr const char* kAverage = "exponential_average";

}  // namespace

ExponentialAverage::ExponentialAverage(std::vector<Tensor> tensors,
                                       const ExponentialAverageOptions& options)
    : decay_(options.decay), tensors_(std::move(tensors)), started_({1}, {.least = 0, .most = 1}) {
  if (tensors_.empty())
    throw DataError(
        kAverage, "there are no tensors: pass net.parameters(), where net is a network of layers");
  if (!(decay_ >= 0.0f && decay_ < 1.0f))
    throw DataError(kAverage, "decay is ", decay_, ", expected at least 0 and less than 1");
  check_leaves(kAverage, "tensor", tensors_);
  for (const Tensor& tensor : tensors_) averages_.push_back(Tensor::zeros(tensor.shape()));
}

void ExponentialAverage::update() {
  const DefaultRounding rounding;
  if (scopes_ > 0)
    throw GraphError(kAverage,
                     "the tensors hold their averages while an AveragedWeights lives: call "
                     "update() after its end");
  const float decay = started_.item() == 0 ? 0.0f : decay_;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Floats w = tensors_[i].floats();
    float* const average = averages_[i].mutable_data();
    parallel_for(tensors_[i].elements(), kernels::kSlowGrain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) average[k] = decay * average[k] + (1.0f - decay) * w[k];
    });
  }
  started_.fill(1);
}

std::vector<NamedState> ExponentialAverage::state() const {
  std::vector<NamedState> entries{{"started", started_}};
  for (size_t i = 0; i < averages_.size(); ++i)
    entries.push_back({std::to_string(i) + ".average", averages_[i]});
  return entries;
}

AveragedWeights::AveragedWeights(ExponentialAverage& average) : average_(average) {
  if (average.started_.item() == 0)
    throw GraphError(kAverage, "there is no average yet: call update() after each step");
  for (size_t i = 0; i < average.averages_.size(); ++i) {
    const Floats values = average.averages_[i].floats();
    float min = 0.0f;
    float max = 0.0f;
    if (values.size() > 0) kernels::min_max_f32(values.size(), values, &min, &max);
    if (!std::isfinite(min) || !std::isfinite(max))
      throw DataError(kAverage, "state \"", i, ".average\" is not finite");
  }
  for (size_t i = 0; i < average.tensors_.size(); ++i) {
    Tensor& tensor = average.tensors_[i];
    const Floats w = tensor.floats();
    Buffer<float> kept(tensor.elements());
    std::copy_n(w.data(), tensor.elements(), kept.data());
    kept_.keep({tensor}, std::move(kept));
  }
  for (size_t i = 0; i < average.tensors_.size(); ++i) {
    const Floats values = average.averages_[i].floats();
    std::copy_n(values.data(), values.size(), average.tensors_[i].mutable_data());
  }
  ++average.scopes_;
}

AveragedWeights::~AveragedWeights() {
  kept_.end([](Kept& kept, Buffer<float>& values, Buffer<float>* later) {
    if (later != nullptr) {
      std::swap(*later, values);
    } else {
      std::copy_n(values.data(), values.size(), kept.tensor.mutable_data());
    }
  });
  --average_.scopes_;
}

}  // namespace quantrain
