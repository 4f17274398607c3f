#include "framework/data/batch.hpp"

#include "framework/core/error.hpp"
#include "framework/data/loader.hpp"
#include "framework/data/tensor_dataset.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

TEST_CASE("cross entropy of a batch uses mixed targets, else labels", "[data][mixup]") {
  std::vector<float> x;
  for (int i = 0; i < 24; ++i) x.push_back(static_cast<float>(i));
  const TensorDataset data(SampleArray::floats({8, 3}, x), Labels{{0, 1, 2, 0, 1, 2, 0, 1}, 3});
  const Tensor logits = test::random_tensor({8, 3}, 1, -2.0f, 2.0f);
  const CrossEntropyOptions smooth{.label_smoothing = 0.25f};

  const Batch plain = *DataLoader(data, {.batch = 8}).begin();
  CHECK(cross_entropy(logits, plain).item() == cross_entropy(logits, plain.labels).item());
  CHECK(cross_entropy(logits, plain, smooth).item() ==
        cross_entropy(logits, plain.labels, smooth).item());

  const Batch mixed = *DataLoader(data, {.batch = 8, .seed = 3, .mixup = 1.0}).begin();
  REQUIRE(mixed.targets.size() == 1);
  CHECK(cross_entropy(logits, mixed).item() == cross_entropy(logits, mixed.targets[0]).item());
  CHECK(cross_entropy(logits, mixed).item() != cross_entropy(logits, mixed.labels).item());
  CHECK(cross_entropy(logits, mixed, smooth).item() ==
        cross_entropy(logits, mixed.targets[0], smooth).item());
}

TEST_CASE("cross entropy of a batch needs labels or one target", "[data][mixup]") {
  const Tensor logits = Tensor::zeros({1, 2});
  QUANTRAIN_CHECK_ERROR(cross_entropy(logits, Batch{.input = logits, .labels = {}}),
                        DataError,
                        "[cross_entropy] the batch has no labels and 0 targets");
  QUANTRAIN_CHECK_ERROR(
      cross_entropy(logits, Batch{.input = logits, .labels = {}, .targets = {logits, logits}}),
      DataError,
      "2 targets, expected labels or one target");
}

}  // namespace quantrain
