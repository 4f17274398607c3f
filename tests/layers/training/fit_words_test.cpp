// What fit() says: before it starts, in its progress display, and about a run that had ended.
#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/data/tensor_dataset.hpp"
#include "framework/io/safetensors.hpp"
#include "framework/optim/sgd.hpp"
#include "layers/layers.hpp"
#include "layers/training/fit.hpp"
#include "quant/prepare/prepare.hpp"
#include "tests/catch.hpp"
#include "tests/system.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using test::printed;
using test::TemporaryFolder;

TensorDataset numbers(int64_t n, float first = 0.0f) {
  std::vector<float> x, y;
  for (int64_t i = 0; i < n; ++i) {
    x.push_back(static_cast<float>(i % 5) / 5.0f);
    x.push_back(i == 0 ? first : 1.0f);
    y.push_back(static_cast<float>(i % 3));
  }
  return {SampleArray::floats({n, 2}, x), SampleArray::floats({n, 1}, y)};
}

FitResult train_on(Module& net,
                   const TensorDataset& data,
                   const LoaderOptions& batches,
                   const FitOptions& options,
                   float learning_rate = 0.01f) {
  Sgd optimizer(net.parameters(), {.learning_rate = learning_rate});
  DataLoader loader(data, batches);
  const auto loss = [&](Batch& batch) { return mse_loss(net(batch.input), batch.targets[0]); };
  return fit(net, optimizer, loader, loss, options);
}

Sequential with_batch_norm() { return Sequential{Linear{2, 3}, BatchNorm1d{3}, Linear{3, 1}}; }

std::vector<float> all_values(const Module& net) {
  std::vector<float> all;
  for (const Tensor& tensor : net.parameters()) {
    const std::vector<float> some = test::values(tensor);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace

TEST_CASE("fit refuses a last batch of one sample before it trains", "[layers][fit]") {
  manual_seed(1);
  Sequential net = with_batch_norm();
  const std::vector<float> before = all_values(net);
  QUANTRAIN_CHECK_ERROR(train_on(net, numbers(9), {.batch = 4}, {}),
                        ShapeError,
                        "9 samples in batches of 4 leave one sample for the last batch, but the "
                        "batch norm 1 normalizes [4, 3] by the batch's statistics");
  QUANTRAIN_CHECK_ERROR(train_on(net, numbers(9), {.batch = 4}, {}),
                        ShapeError,
                        "drop_last to leave that sample out");
  CHECK(all_values(net) == before);
  CHECK(train_on(net, numbers(9), {.batch = 4, .drop_last = true}, {}).steps == 2);
  CHECK(train_on(net, numbers(9), {.batch = 4, .merge_last = true}, {}).steps == 2);
  CHECK(train_on(net, numbers(10), {.batch = 4}, {}).steps == 3);
  // The last batch is never reached, or has several values for each channel.
  CHECK(train_on(net, numbers(9), {.batch = 4}, {.steps = 2}).steps == 2);
  QUANTRAIN_CHECK_ERROR(
      train_on(net, numbers(9), {.batch = 4}, {.steps = 3}), ShapeError, "one sample");
  Sequential without{Linear{2, 1}};
  CHECK(train_on(without, numbers(9), {.batch = 4}, {}).steps == 3);
  Sequential signals{Reshape{{2, 1}}, BatchNorm1d{1}, Flatten{}, Linear{2, 1}};
  CHECK(train_on(signals, numbers(9), {.batch = 4}, {}).steps == 3);
}

TEST_CASE("fit refuses a last batch of one sample in a prepared network", "[layers][fit]") {
  manual_seed(1);
  Sequential net = with_batch_norm();
  quant::QConfig config = quant::QConfig::int8();
  config.input_range = {0.0f, 1.0f};
  quant::prepare_qat(net, numbers(9).batch(0, 2).input, config);
  QUANTRAIN_CHECK_ERROR(train_on(net, numbers(9), {.batch = 4}, {}), ShapeError, "one sample");
  CHECK(train_on(net, numbers(9), {.batch = 4, .merge_last = true}, {}).steps == 2);
}

TEST_CASE("the progress display shows metrics, the best epoch and an early stop", "[layers][fit]") {
  const std::vector<double> accuracy{0.5, 0.75, 0.625, 0.6};
  size_t epoch = 0;
  Sequential net{Linear{2, 1}};
  const auto evaluate = [&] { return Metrics{{"accuracy", accuracy[epoch++]}, {"a", 1.0}}; };
  FitOptions options{
      .epochs = 9,
      .evaluate = evaluate,
      .early_stopping = {.metric = "accuracy", .patience = 2, .smaller_is_better = false},
      .label = "float"};
  const std::string text = printed([&] { train_on(net, numbers(8), {.batch = 4}, options); });
  CAPTURE(text);
  CHECK(text.find("float epoch 1/9: loss ") == 0);
  CHECK(text.find(", accuracy 0.5000 (best), a 1.0000, ") != std::string::npos);
  CHECK(text.find(", accuracy 0.7500 (best), a 1.0000, ") != std::string::npos);
  CHECK(text.find(", accuracy 0.6250, a 1.0000, ") != std::string::npos);
  CHECK(text.find("float: stopped early after epoch 4; best epoch 2, accuracy 0.7500, whose state "
                  "is restored\n") != std::string::npos);

  // Without a label, nothing is printed. Without metrics, the line has the loss alone.
  options.label = "";
  epoch = 0;
  CHECK(printed([&] { train_on(net, numbers(8), {.batch = 4}, options); }).empty());
  const std::string plain =
      printed([&] { train_on(net, numbers(8), {.batch = 4}, {.label = "x"}); });
  CHECK(plain.find("x epoch 1/1: loss ") == 0);
  CHECK(plain.find(" samples/s, ") != std::string::npos);
  CHECK(std::count(plain.begin(), plain.end(), '\n') == 1);
  CHECK(std::count(plain.begin(), plain.end(), ',') == 2);
}

TEST_CASE("a run that had ended says so and what differs", "[layers][fit]") {
  const TemporaryFolder folder;
  Sequential net{Linear{2, 1}};
  const LoaderOptions batches{.batch = 4};
  FitOptions options{.epochs = 2, .checkpoints = {.folder = folder.path()}, .label = "float"};
  FitResult first;
  printed([&] { first = train_on(net, numbers(8), batches, options); });
  CHECK_FALSE(first.already_finished);
  CHECK(first.differences.empty());

  options.checkpoints.resume = true;
  FitResult again;
  const std::vector<float> before = all_values(net);
  std::string text = printed([&] { again = train_on(net, numbers(8), batches, options); });
  CHECK(again.already_finished);
  CHECK(again.differences.empty());
  CHECK(again.epochs.size() == 2);
  CHECK(text == "float: the run in " + folder.path() +
                    " had ended after 2 epochs, so nothing was trained\n");
  CHECK(all_values(net) == before);

  options.epochs = 5;
  text = printed([&] { again = train_on(net, numbers(8, 0.5f), {.batch = 2}, options, 0.5f); });
  CAPTURE(text);
  CHECK(again.already_finished);
  CHECK(again.differences.find("epochs was 2 and is 5, learning rate was 0.01 and is 0.5, hash of "
                               "the data was ") == 0);
  CHECK(again.differences.find(", batch was 4 and is 2") != std::string::npos);
  CHECK(again.differences.find("seed") == std::string::npos);
  CHECK(text.find("so nothing was trained, although epochs was 2 and is 5") != std::string::npos);
  CHECK(text.find("name another folder\n") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);

  // A schedule with another rate differs, too, and data that only have another order of samples.
  options.label = "";
  options.schedule = [](int64_t step) { return 0.1f / static_cast<float>(1 + step); };
  again = train_on(net, numbers(8), batches, options);
  CHECK(again.differences ==
        "epochs was 2 and is 5, learning rate was 0.01 and is 0.1 to 0.0166667 "
        "to 0.01");
  options.schedule = nullptr;
  const std::vector<int64_t> other{1, 0, 2, 3, 4, 5, 6, 7};
  again = train_on(net, numbers(8).subset(other), batches, options);
  CHECK(again.differences.find("hash of the data") != std::string::npos);
}

TEST_CASE("a checkpoint of an early version has no settings and still ends the run",
          "[layers][fit]") {
  const TemporaryFolder folder;
  Sequential net{Linear{2, 1}};
  FitOptions options{.checkpoints = {.folder = folder.path()}};
  train_on(net, numbers(8), {.batch = 4}, options);
  const std::string path = folder / "step-000000000002.safetensors";
  std::string position = load_safetensors(path).metadata_at("position");
  const size_t begin = position.find("\"settings\":");
  REQUIRE(begin != std::string::npos);
  position.erase(begin, position.find("],", begin) + 2 - begin);
  std::vector<NamedState> tensors;
  for (const TensorFile::Entry& entry : load_safetensors(path).entries()) {
    if (entry.dtype == DType::kI64) continue;
    tensors.push_back(
        {entry.name, Tensor::from(entry.shape, load_safetensors(path).values<float>(entry.name))});
  }
  options.checkpoints.resume = true;
  Checkpoints(options.checkpoints).save(2, tensors, position);
  options.epochs = 3;
  const FitResult again = train_on(net, numbers(8), {.batch = 4}, options);
  CHECK(again.already_finished);
  CHECK(again.differences.empty());
}

}  // namespace quantrain
