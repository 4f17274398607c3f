#include "framework/data/tensor_dataset.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/data/dataset_error.hpp"
#include "framework/data/mixup.hpp"

namespace quantrain {
namespace {

void check_class_labels(const Labels& labels, int64_t n) {
  if (static_cast<int64_t>(labels.of.size()) != n)
    throw DataError(kDataset, n, " samples, but ", labels.of.size(), " labels");
  if (labels.classes < 1)
    throw DataError(kDataset, "number of classes is ", labels.classes, ", expected at least 1");
  for (size_t i = 0; i < labels.of.size(); ++i) {
    if (labels.of[i] >= 0 && labels.of[i] < labels.classes) continue;
    throw DataError(kDataset,
                    "label ",
                    labels.of[i],
                    " of sample ",
                    i,
                    " is outside [0, ",
                    labels.classes,
                    ")");
  }
}

}  // namespace

TensorDataset::TensorDataset(std::vector<SampleArray> inputs, Targets targets) {
  if (inputs.empty()) throw DataError(kDataset, "has no input");
  size_ = inputs[0].size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].size() != size_) {
      throw DataError(
          kDataset, "input 0 has ", size_, " samples, input ", i, " has ", inputs[i].size());
    }
    if (inputs[i].shape().rank() == 0) {
      throw DataError(kDataset,
                      "input ",
                      i,
                      " has shape [",
                      size_,
                      "], expected [N, ...]: for one value per sample, use [",
                      size_,
                      ", 1]");
    }
  }
  if (const Labels* const labels = std::get_if<Labels>(&targets))
    check_class_labels(*labels, size_);
  if (const auto* const tensors = std::get_if<std::vector<SampleArray>>(&targets)) {
    for (size_t i = 0; i < tensors->size(); ++i) {
      if ((*tensors)[i].size() == size_) continue;
      throw DataError(kDataset, size_, " samples, but target ", i, " has ", (*tensors)[i].size());
    }
  }
  data_ = std::make_shared<const Data>(Data{std::move(inputs), std::move(targets)});
}

TensorDataset::TensorDataset(SampleArray input, Targets targets)
    : TensorDataset(std::vector<SampleArray>{std::move(input)}, std::move(targets)) {}

TensorDataset::TensorDataset(SampleArray input, SampleArray target)
    : TensorDataset(std::move(input), Targets(std::vector<SampleArray>{std::move(target)})) {}

const Labels& TensorDataset::labelled() const {
  const Labels* const labels = std::get_if<Labels>(&data_->targets);
  if (labels == nullptr) throw DataError(kDataset, "has no labels: its targets are not Labels");
  return *labels;
}

int64_t TensorDataset::row(int64_t i) const {
  if (i < 0 || i >= size_) throw DataError(kDataset, "sample ", i, " is outside [0, ", size_, ")");
  return rows_ == nullptr ? i : (*rows_)[static_cast<size_t>(i)];
}

int32_t TensorDataset::label(int64_t i) const { return labelled().of[static_cast<size_t>(row(i))]; }

std::vector<int32_t> TensorDataset::labels() const {
  std::vector<int32_t> all;
  all.reserve(static_cast<size_t>(size_));
  for (int64_t i = 0; i < size_; ++i) all.push_back(label(i));
  return all;
}

TensorDataset TensorDataset::first(int64_t n) const {
  if (n < 1 || n > size_)
    throw DataError(kDataset, "cannot take the first ", n, " of ", size_, " samples");
  TensorDataset result = *this;
  result.size_ = n;
  return result;
}

TensorDataset TensorDataset::subset(std::span<const int64_t> indices) const {
  if (indices.empty()) throw DataError(kDataset, "a subset needs at least one sample");
  std::vector<int64_t> rows;
  rows.reserve(indices.size());
  for (const int64_t i : indices) rows.push_back(row(i));
  TensorDataset result = *this;
  result.size_ = static_cast<int64_t>(rows.size());
  result.rows_ = std::make_shared<const std::vector<int64_t>>(std::move(rows));
  return result;
}

Batch TensorDataset::batch(int64_t begin, int64_t end) const {
  if (begin < 0 || begin >= end || end > size_)
    throw DataError(kDataset, "samples [", begin, ", ", end, ") are not within [0, ", size_, ")");
  std::vector<int64_t> indices(static_cast<size_t>(end - begin));
  std::iota(indices.begin(), indices.end(), begin);
  return make(indices, {});
}

BatchSource::Reader TensorDataset::read(const Pass& pass) const {
  check_mixup(pass.mixup);
  if (pass.mixup > 0.0 && std::holds_alternative<std::monostate>(data_->targets))
    throw DataError("loader", "mixup mixes targets, but the data set has none");
  return [dataset = *this, pass](std::span<const int64_t> indices) {
    return dataset.make(indices, pass);
  };
}

Batch TensorDataset::make(std::span<const int64_t> indices, const Pass& pass) const {
  const DefaultRounding rounding;
  std::vector<int64_t> rows;
  rows.reserve(indices.size());
  for (const int64_t i : indices) rows.push_back(row(i));

  // Each sample is augmented with its own random numbers, then mixed with a partner. The partner is
  // augmented with the partner's own random numbers, so the mixture does not depend on the batch.
  const std::vector<MixPartner> partners = mix_partners(pass, indices, size_);
  SampleArray::Scratch scratch;
  const auto mixed = [&](const SampleArray& samples,
                         const Transform& augment) -> SampleArray::Edit {
    if (!augment && partners.empty()) return nullptr;
    return [&, augment, from = &samples](size_t i, const SampleView& sample) {
      const auto augmented = [&](const SampleView& view, int64_t index) {
        if (!augment) return;
        Random random = pass.random(index);
        augment(view, random);
      };
      augmented(sample, indices[i]);
      if (partners.empty()) return;
      const SampleView other = from->view(scratch);
      from->copy(row(partners[i].index), other);
      augmented(other, partners[i].index);
      mix(sample, other, partners[i].own);
    };
  };

  Batch batch;
  for (size_t i = 0; i < data_->inputs.size(); ++i) {
    const SampleArray& input = data_->inputs[i];
    Tensor tensor = input.tensor(rows, mixed(input, i == 0 ? pass.augment : nullptr));
    if (i == 0) {
      batch.input = std::move(tensor);
    } else {
      batch.more_inputs.push_back(std::move(tensor));
    }
  }
  if (const Labels* const labels = std::get_if<Labels>(&data_->targets)) {
    batch.labels.reserve(rows.size());
    for (const int64_t r : rows) batch.labels.push_back(labels->of[static_cast<size_t>(r)]);
    if (!partners.empty()) {
      const auto other_label = [&](size_t i) {
        return labels->of[static_cast<size_t>(row(partners[i].index))];
      };
      batch.targets.push_back(mixed_labels(batch.labels, other_label, partners, labels->classes));
    }
  } else if (const auto* const tensors = std::get_if<std::vector<SampleArray>>(&data_->targets)) {
    for (const SampleArray& target : *tensors)
      batch.targets.push_back(target.tensor(rows, mixed(target, nullptr)));
  } else if (std::holds_alternative<SameAsInput>(data_->targets)) {
    batch.targets.push_back(batch.input);
  }
  return batch;
}

}  // namespace quantrain
