#include "framework/metrics/evaluation.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "framework/autograd/ops/cross_entropy.hpp"
#include "framework/core/buffer.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/softmax.hpp"

namespace quantrain {
namespace {

constexpr const char* kEvaluate = "evaluate";
constexpr std::array<std::string_view, 5> kOfLabels = {
    "accuracy", "cross_entropy", "recall", "precision", "f1"};
constexpr std::array<std::string_view, 4> kOfNumbers = {"mae", "mse", "rmse", "r2"};

template <size_t N>
bool contains(const std::array<std::string_view, N>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// y's shape without its last axis: the shape of its rows' labels.
Shape rows_of(const Tensor& y) {
  const Shape& shape = y.shape();
  return Shape(std::vector<int64_t>(shape.begin(), shape.end() - (shape.rank() > 0 ? 1 : 0)));
}

const Tensor& only(const std::vector<Tensor>& outputs, const char* where) {
  if (outputs.size() == 1) return outputs[0];
  throw ShapeError(where,
                   "the network has ",
                   outputs.size(),
                   " outputs, expected one: predict_outputs() returns all of them; Evaluation and "
                   "the functions in framework/metrics give the metrics of each");
}

}  // namespace

Evaluation::Evaluation(std::vector<std::string> names, const EvaluateOptions& options)
    : names_(std::move(names)), options_(options) {
  for (const std::string& name : names_) {
    if (contains(kOfLabels, name) || contains(kOfNumbers, name)) continue;
    throw DataError(kEvaluate,
                    "there is no metric \"",
                    name,
                    "\"; for labels: accuracy, cross_entropy, recall, precision, f1; for numbers: "
                    "mae, mse, rmse, r2. For other metrics use predict()");
  }
}

void Evaluation::check_names(bool labels) const {
  if (labels ? errors_.has_value() : classes_.has_value())
    throw DataError(kEvaluate, "some batches have labels and others have numbers as targets");
  for (const std::string& name : names_) {
    if (labels ? contains(kOfLabels, name) : contains(kOfNumbers, name)) continue;
    throw DataError(kEvaluate,
                    labels ? "the data set has labels, but \"" : "the targets are numbers, but \"",
                    name,
                    labels ? "\" needs numbers as targets" : "\" needs labels");
  }
}

void Evaluation::add(const Tensor& y, const Batch& batch) {
  const DefaultRounding rounding;
  if (!batch.labels.empty()) return add_classes(y, batch.labels);
  if (batch.targets.size() != 1)
    throw DataError(kEvaluate,
                    "the batch has no labels and ",
                    batch.targets.size(),
                    " targets, expected labels or one target: compute metrics of several outputs "
                    "from predict_outputs()");
  const Tensor& target = batch.targets[0];
  if (target.shape() == y.shape() || !(target.shape() == rows_of(y))) return add_numbers(y, target);
  if (y.dim(-1) > 1) return add_classes(y, labels_in(target));
  const Floats numbers = target.floats();
  add_numbers(y, Tensor::from(y.shape(), {numbers.data(), static_cast<size_t>(numbers.size())}));
}

void Evaluation::add_classes(const Tensor& y, std::span<const int32_t> labels) {
  check_names(true);
  const int64_t classes = y.rank() < 1 ? 0 : y.dim(y.rank() - 1);
  const int64_t rows = classes == 0 ? 0 : y.elements() / classes;
  if (y.rank() < 2 || rows != static_cast<int64_t>(labels.size()) || rows == 0)
    throw ShapeError(kEvaluate,
                     "outputs are ",
                     y.shape(),
                     " for ",
                     labels.size(),
                     " labels, expected [..., classes] with one row for each label");
  if (classes_ && classes_->classes() != classes)
    throw ShapeError(
        kEvaluate, "outputs are ", y.shape(), ", but had ", classes_->classes(), " classes before");
  const Floats scores = y.floats();
  std::vector<float> counted;
  std::vector<int32_t> counted_labels;
  for (int64_t i = 0; i < rows; ++i) {
    const int32_t label = labels[static_cast<size_t>(i)];
    if (label == options_.ignore_index) continue;
    const float* const row = scores.data() + i * classes;
    counted.insert(counted.end(), row, row + classes);
    counted_labels.push_back(label);
  }
  const auto n = std::ssize(counted_labels);
  // All that may fail comes before the first change.
  std::optional<ConfusionMatrix> first;
  if (!classes_) first.emplace(classes);
  double cross_entropy = 0.0;
  if (n > 0) {
    Buffer<float> log_p(n * classes);
    kernels::softmax_f32(n, classes, true, counted.data(), log_p.data());
    ConfusionMatrix& matrix = classes_ ? *classes_ : *first;
    matrix.add(Tensor::from({n, classes}, counted), counted_labels);
    for (int64_t i = 0; i < n; ++i)
      cross_entropy -= double{log_p[i * classes + counted_labels[static_cast<size_t>(i)]]};
  }
  if (first) classes_ = first;
  cross_entropy_ += cross_entropy;
}

void Evaluation::add_numbers(const Tensor& y, const Tensor& target) {
  check_names(false);
  if (options_.ignore_index)
    throw DataError(kEvaluate, "ignore_index is for labels, and the targets are numbers");
  RegressionErrors errors = errors_.value_or(RegressionErrors());
  errors.add(y, target);
  errors_ = std::move(errors);
}

Metrics Evaluation::metrics() const {
  Metrics result;
  // Adds the values of some classes or outputs, and under the name itself their mean.
  const auto add_all =
      [&](const std::string& name, int64_t n, const auto& value, const auto& counts, bool each) {
        double sum = 0.0;
        int64_t counted = 0;
        for (int64_t i = 0; i < n; ++i) {
          const double v = value(i);
          if (each) result[name + '_' + std::to_string(i)] = v;
          if (!counts(i)) continue;
          sum += v;
          ++counted;
        }
        result[name] = sum / static_cast<double>(counted);
      };
  const auto add_classes = [&](const std::string& name, auto value) {
    const auto occurs = [&](int64_t c) {
      for (int64_t p = 0; p < classes_->classes(); ++p) {
        if (classes_->count(c, p) > 0) return true;
      }
      return false;
    };
    const auto of = [&](int64_t c) { return ((*classes_).*value)(c); };
    add_all(name, classes_->classes(), of, occurs, true);
  };
  const auto add_outputs = [&](const std::string& name, auto value) {
    const int64_t n = errors_->outputs();
    const auto of = [&](int64_t k) { return ((*errors_).*value)(k); };
    add_all(
        name, n, of, [](int64_t) { return true; }, n > 1 && n <= kMostOutputs);
  };
  if (!classes_ && !errors_) throw DataError(kEvaluate, "there is nothing to evaluate: no batch");
  if (classes_ && classes_->total() == 0)
    throw DataError(kEvaluate, "there is nothing to evaluate: all labels are ignore_index");
  std::vector<std::string> names = names_;
  if (names.empty() && classes_) names = {"accuracy", "cross_entropy"};
  if (names.empty()) names = {"mae", "mse", "r2"};
  for (const std::string& name : names) {
    if (name == "accuracy") result[name] = classes_->accuracy();
    if (name == "cross_entropy")
      result[name] = cross_entropy_ / static_cast<double>(classes_->total());
    if (name == "recall") add_classes(name, &ConfusionMatrix::recall);
    if (name == "precision") add_classes(name, &ConfusionMatrix::precision);
    if (name == "f1") add_classes(name, &ConfusionMatrix::f1);
    if (name == "mae") add_outputs(name, &RegressionErrors::mae);
    if (name == "mse") add_outputs(name, &RegressionErrors::mse);
    if (name == "rmse") add_outputs(name, &RegressionErrors::rmse);
    if (name == "r2") add_outputs(name, &RegressionErrors::r2);
  }
  return result;
}

Metrics evaluate(const Runner& run,
                 const DataLoader& batches,
                 const std::vector<std::string>& metrics,
                 const EvaluateOptions& options) {
  Evaluation evaluation(metrics, options);
  for (const Batch& batch : batches) evaluation.add(only(run(batch), kEvaluate), batch);
  return evaluation.metrics();
}

std::vector<Tensor> predict_outputs(const Runner& run, const DataLoader& batches) {
  constexpr const char* kPredict = "predict";
  struct Joined {
    Shape sample;
    std::vector<float> values;
  };
  std::vector<Joined> all;
  int64_t samples = 0;
  for (const Batch& batch : batches) {
    const int64_t n = batch.size();
    const std::vector<Tensor> outputs = run(batch);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Shape& shape = outputs[i].shape();
      if (shape.rank() < 1 || shape[0] != n)
        throw ShapeError(kPredict, "output ", i, " is ", shape, " for ", n, " samples");
      const Shape sample(std::vector<int64_t>(shape.begin() + 1, shape.end()));
      if (samples == 0) all.push_back({sample, {}});
      if (i >= all.size() || !(all[i].sample == sample))
        throw ShapeError(kPredict, "output ", i, " is ", shape, ", another shape than before");
      const Floats values = outputs[i].floats();
      all[i].values.insert(all[i].values.end(), values.data(), values.data() + values.size());
    }
    samples += n;
  }
  if (all.empty()) throw DataError(kPredict, "there is nothing to predict: no batch");
  std::vector<Tensor> result;
  for (const Joined& joined : all) {
    std::vector<int64_t> extents{samples};
    extents.insert(extents.end(), joined.sample.begin(), joined.sample.end());
    result.push_back(Tensor::from(Shape(extents), joined.values));
  }
  return result;
}

Tensor predict(const Runner& run, const DataLoader& batches) {
  return only(predict_outputs(run, batches), "predict");
}

}  // namespace quantrain
