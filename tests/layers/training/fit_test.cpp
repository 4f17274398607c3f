#include "layers/training/fit.hpp"

#include <cmath>
#include <limits>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "framework/io/safetensors.hpp"
#include "framework/optim/clip.hpp"
#include "framework/optim/sgd.hpp"
#include "layers/layers.hpp"
#include "layers/state.hpp"
#include "layers/training/epoch_log.hpp"
#include "layers/training/position.hpp"
#include "tests/catch.hpp"
#include "tests/layers/training/some_rows.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::read_bytes;
using test::some_rows;
using test::TemporaryFolder;
using test::values;

namespace {

/// A network with its optimizer and data.
struct Training {
  Sequential net;
  Sgd optimizer;
  DataLoader loader;

  explicit Training(int64_t batch = 4)
      : net(make()),
        optimizer(net.parameters(), {.learning_rate = 0.1f, .momentum = 0.9f}),
        loader(some_rows(22), {.batch = batch, .shuffle = true, .seed = 1}) {}

  static Sequential make() {
    manual_seed(3);
    return Sequential{Linear{3, 4}, ReLU{}, Linear{4, 2}};
  }
  Tensor loss(Batch& batch) { return cross_entropy(net(batch.input), batch.labels); }
  FitResult fit(const FitOptions& options) {
    return quantrain::fit(
        net, optimizer, loader, [this](Batch& batch) { return loss(batch); }, options);
  }
  std::vector<float> weights() const {
    std::vector<float> all;
    for (const NamedState& entry : state(net)) {
      const std::vector<float> some = values(entry);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }
};

}  // namespace

TEST_CASE("fit gives the same weights as a loop written by hand", "[layers][fit]") {
  const Schedule schedule = cosine_schedule(0.2f, {.steps = 12});
  Training own;
  std::vector<float> losses;
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (Batch& batch : own.loader.epoch(7 + epoch)) {
      own.optimizer.set_learning_rate(schedule(step++));
      own.optimizer.zero_grad();
      Tensor loss = own.loss(batch);
      loss.backward();
      clip_grad_norm(own.optimizer.parameters(), 0.5f);
      own.optimizer.step();
      losses.push_back(loss.item());
    }
  }
  Training by_fit;
  std::vector<float> seen;
  const FitResult result =
      by_fit.fit({.epochs = 2,
                  .first_epoch = 7,
                  .schedule = schedule,
                  .clip_norm = 0.5f,
                  .after_step = [&](int64_t, float loss) { seen.push_back(loss); }});
  CHECK(by_fit.weights() == own.weights());
  CHECK(seen == losses);
  CHECK(result.steps == 12);
  REQUIRE(result.epochs.size() == 2);
  double sum = 0.0;
  for (size_t i = 0; i < 6; ++i) sum += (i < 5 ? 4.0 : 2.0) * static_cast<double>(losses[i]);
  CHECK(result.epochs[0].loss == test::Approx(sum / 22.0));
  CHECK(result.epochs[1].steps == 12);
  CHECK(result.epochs[1].learning_rate == schedule(11));
}

TEST_CASE("accumulated gradients of small batches make the step of a large one", "[layers][fit]") {
  Training whole(8);
  const FitResult one = whole.fit({.steps = 1});
  CHECK(one.steps == 1);
  Training parts(4);
  const FitResult two = parts.fit({.steps = 1, .accumulate = 2});
  CHECK(two.steps == 1);
  CHECK(parts.weights() != Training().weights());
  const std::vector<float> a = whole.weights();
  const std::vector<float> b = parts.weights();
  for (size_t i = 0; i < a.size(); ++i) CHECK(b[i] == test::Approx(a[i]).margin(1e-6));
  // 22 rows make 6 batches of up to 4 rows. With 4 batches to a step, these make 2 steps.
  CHECK(Training().fit({.accumulate = 4}).steps == 2);
}

TEST_CASE("training stops when the metric no longer rises, and keeps the best weights",
          "[layers][fit]") {
  const std::vector<double> accuracy = {0.5, 0.7, 0.6, 0.7, 0.9};
  Training training;
  std::vector<std::vector<float>> after;
  size_t epoch = 0;
  FitOptions options{
      .epochs = 9,
      .evaluate =
          [&] {
            CHECK_FALSE(training.net.training());
            after.push_back(training.weights());
            return Metrics{{"accuracy", accuracy[epoch++]}};
          },
      .early_stopping = {.metric = "accuracy", .patience = 2, .smaller_is_better = false}};
  const FitResult result = training.fit(options);
  CHECK(result.stopped_early);
  CHECK(result.epochs.size() == 4);
  CHECK(result.best_epoch == 1);
  CHECK(training.weights() == after[1]);
  CHECK(after[1] != after[3]);
  CHECK(training.net.training());

  Training errors;
  epoch = 0;
  options.evaluate = [&] { return Metrics{{"error", accuracy[epoch++]}}; };
  options.early_stopping = {.metric = "error", .patience = 2, .smaller_is_better = true};
  CHECK(errors.fit(options).best_epoch == 0);
}

TEST_CASE("log and page report each epoch", "[layers][fit]") {
  const TemporaryFolder folder;
  Training training;
  const FitResult result = training.fit({.epochs = 2,
                                         .evaluate =
                                             [] {
                                               return Metrics{{"<accuracy>", 0.25}};
                                             },
                                         .log = folder / "log",
                                         .page = folder / "page.html"});
  const auto text = [&](const std::string& name) {
    const std::vector<uint8_t> bytes = read_bytes(folder / name);
    return std::string(bytes.begin(), bytes.end());
  };
  CHECK(text("log") == to_json(result.epochs[0]) + '\n' + to_json(result.epochs[1]) + '\n');
  CHECK(text("log").starts_with(R"({"epoch":0,"steps":6,"loss":)"));
  CHECK(text("log").find(R"("<accuracy>":0.25})") != std::string::npos);
  const std::string page = text("page.html");
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(page.find("&lt;accuracy&gt;") != std::string::npos);
  CHECK(page.find("<accuracy>") == std::string::npos);
  CHECK(page.find("http") == std::string::npos);
}

TEST_CASE("a page has numbers for every finite metric", "[layers][fit]") {
  for (const double value : {0.0, 1e17, 1e300, -1e308, 1e-320}) {
    const std::string page = training_page("run", {{.loss = value}, {.epoch = 1, .loss = value}});
    CHECK(page.find("nan") == std::string::npos);
    CHECK(page.find("inf") == std::string::npos);
  }
  const std::string page =
      training_page("run", {{.loss = -1.7e308}, {.epoch = 1, .loss = 1.7e308}});
  CHECK(page.find("nan") == std::string::npos);
  CHECK(page.find("inf") == std::string::npos);
}

TEST_CASE("the curves of a page that has some of the epochs name these epochs", "[layers][fit]") {
  const std::string page = training_page("run", {{}, {.epoch = 2}, {.epoch = 4}, {.epoch = 5}});
  CHECK(page.find("<title>epoch 5: ") != std::string::npos);
  CHECK(page.find("<title>epoch 6: ") != std::string::npos);
  CHECK(page.find("<title>epoch 2: ") == std::string::npos);
}

TEST_CASE("fit refuses invalid options, metrics and losses", "[layers][fit]") {
  Training t;
  const std::vector<float> before = t.weights();
  QUANTRAIN_CHECK_ERROR(t.fit({.epochs = 0}), DataError, "epochs is 0");
  QUANTRAIN_CHECK_ERROR(t.fit({.steps = -1}), DataError, "steps is -1");
  QUANTRAIN_CHECK_ERROR(t.fit({.accumulate = 0}), DataError, "accumulate is 0");
  QUANTRAIN_CHECK_ERROR(t.fit({.first_epoch = -1}), DataError, "first_epoch is -1");
  QUANTRAIN_CHECK_ERROR(t.fit({.clip_norm = -1.0f}), DataError, "clip_norm is -1");
  QUANTRAIN_CHECK_ERROR(t.fit({.early_stopping = {.patience = 1}}),
                        DataError,
                        "patience is set, but no metric is named");
  QUANTRAIN_CHECK_ERROR(
      t.fit({.early_stopping = {.metric = "accuracy", .smaller_is_better = false}}),
      DataError,
      "there is no evaluate");
  QUANTRAIN_CHECK_ERROR(
      t.fit({.checkpoints = {.resume = true}}), DataError, "checkpoints.folder is empty");
  CHECK(t.weights() == before);
  QUANTRAIN_CHECK_ERROR(
      t.fit({.evaluate =
                 [] {
                   return Metrics{{"error", 1.0}};
                 },
             .early_stopping = {.metric = "accuracy", .smaller_is_better = false}}),
      DataError,
      "evaluate returned no \"accuracy\"");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  QUANTRAIN_CHECK_ERROR(t.fit({.evaluate =
                                   [nan] {
                                     return Metrics{{"error", nan}};
                                   }}),
                        DataError,
                        "the metric \"error\" is nan");
  QUANTRAIN_CHECK_ERROR(t.fit({.evaluate =
                                   [] {
                                     return Metrics{{"loss", 1.0}};
                                   }}),
                        DataError,
                        "the metric \"loss\" has the name of a field of EpochReport");
  const auto infinite = [&](Batch& batch) {
    return mul(t.loss(batch), Tensor::full({}, std::numeric_limits<float>::infinity()));
  };
  QUANTRAIN_CHECK_ERROR(fit(t.net, t.optimizer, t.loader, infinite),
                        DataError,
                        "the loss is inf before the first step: the data");
  const auto later = [&, step = 0](Batch& batch) mutable {
    return step++ == 0 ? t.loss(batch) : infinite(batch);
  };
  QUANTRAIN_CHECK_ERROR(fit(t.net, t.optimizer, t.loader, later),
                        DataError,
                        "the loss is inf in step 1: the learning rate 0.1 may be too large");
  QUANTRAIN_CHECK_ERROR(
      fit(t.net, t.optimizer, t.loader, [&](Batch& batch) { return t.net(batch.input); }),
      ShapeError,
      "the loss has shape [4, 2], expected one number");
  QUANTRAIN_CHECK_ERROR(fit(t.net,
                            t.optimizer,
                            t.loader,
                            [&](Batch& batch) {
                              const NoGrad no_grad;
                              return t.loss(batch);
                            }),
                        DataError,
                        "the loss depends on no parameter of the network");
  Training other;
  const auto of_other = [&](Batch& batch) { return other.loss(batch); };
  QUANTRAIN_CHECK_ERROR(fit(t.net, other.optimizer, t.loader, of_other),
                        DataError,
                        "the loss depends on no parameter of the network");
  QUANTRAIN_CHECK_ERROR(fit(other.net, t.optimizer, t.loader, of_other),
                        DataError,
                        "the loss depends on none of the optimizer's parameters");
}

TEST_CASE("fit refuses a loss that depends on parameters it would never train", "[layers][fit]") {
  Training t;
  const std::vector<float> before = t.weights();
  Linear unknown(2, 2);
  const auto with_unknown = [&](Batch& batch) {
    return cross_entropy(unknown(t.net(batch.input)), batch.labels);
  };
  QUANTRAIN_CHECK_ERROR(
      fit(t.net, t.optimizer, t.loader, with_unknown),
      DataError,
      "operation linear uses \"weight\" [2, 2], which requires a gradient, but is a parameter of "
      "neither");
  CHECK(t.weights() == before);
  CHECK(!unknown.weight().grad().defined());

  // The optimizer may have parameters that are not the network's.
  std::vector<Tensor> all = t.net.parameters();
  for (const Tensor& parameter : unknown.parameters()) all.push_back(parameter);
  Sgd both(all, {.learning_rate = 0.1f});
  const std::vector<float> start = values(unknown.weight());
  fit(t.net, both, t.loader, with_unknown);
  CHECK(values(unknown.weight()) != start);

  // The caller may train them. Leaves without a name are the caller's.
  CHECK_NOTHROW(
      fit(t.net, t.optimizer, t.loader, with_unknown, {.also = unknown.named_parameters()}));
  CHECK_NOTHROW(fit(t.net, t.optimizer, t.loader, [&](Batch& batch) {
    return t.loss(batch) + mean(square(Tensor::full({2}, 0.5f).set_requires_grad(true)));
  }));

  // Gradients may pass through layers that stay as they are.
  for (Tensor parameter : unknown.parameters()) parameter.set_requires_grad(false);
  const std::vector<float> fixed = values(unknown.weight());
  const std::vector<float> trained = t.weights();
  fit(t.net, t.optimizer, t.loader, with_unknown);
  CHECK(t.weights() != trained);
  CHECK(values(unknown.weight()) == fixed);
}

TEST_CASE("a checkpoint with an invalid position is refused", "[layers][fit]") {
  const TemporaryFolder folder;
  const std::string path = folder / "step-000000000006.safetensors";
  Training one;
  const auto evaluate = [] { return Metrics{{"accuracy", 0.5}}; };
  one.fit({.evaluate = evaluate,
           .early_stopping = {.metric = "accuracy", .smaller_is_better = false},
           .checkpoints = {.folder = folder.path()}});
  const TensorFile file = load_safetensors(path);
  std::vector<NamedState> tensors;
  for (const TensorFile::Entry& entry : file.entries()) {
    if (entry.dtype == DType::kI64) {
      IntegerBuffer integers(entry.shape);
      integers.set(file.values<int64_t>(entry.name));
      tensors.push_back({entry.name, integers});
    } else {
      tensors.push_back({entry.name, Tensor::from(entry.shape, file.values<float>(entry.name))});
    }
  }
  const CheckpointOptions resume{
      .folder = folder.path(), .resume = true, .configuration = file.metadata_at("configuration")};
  const auto refused = [&](const std::string& text,
                           const std::string& from,
                           const std::string& to,
                           const std::string& where = "[checkpoint's position] ") {
    std::string position = file.metadata_at("position");
    CAPTURE(position, from);
    REQUIRE(position.find(from) != std::string::npos);
    position.replace(position.find(from), from.size(), to);
    Checkpoints(resume).save(6, tensors, position);
    Training other;
    const std::vector<float> before = other.weights();
    QUANTRAIN_CHECK_ERROR(
        other.fit({.epochs = 2,
                   .evaluate = evaluate,
                   .early_stopping = {.metric = "accuracy", .smaller_is_better = false},
                   .checkpoints = {.folder = folder.path(), .resume = true}}),
        DataError,
        where + text);
  };
  refused("is not JSON: ", "{", "");
  refused("the checkpoint was taken after batch 6 of an epoch, but an epoch now has 6 batches",
          "\"batch\":0,\"steps\":6,\"loss_sum\":0.0,\"samples\":0",
          "\"batch\":6,\"steps\":6,\"loss_sum\":0.0,\"samples\":22",
          "[fit] ");
  refused("has the key \"batch\" twice", "\"batch\":0", "\"batch\":0,\"batch\":0");
  refused("\"batch\" is -1, expected a whole number", "\"batch\":0", "\"batch\":-1");
  refused("\"steps\" is 6.5, expected a whole number", "\"steps\":6", "\"steps\":6.5");
  refused("\"ended\" is 1, expected true or false", "\"ended\":true", "\"ended\":1");
  refused("no epoch 1", "\"best_epoch\":0", "\"best_epoch\":1");
  refused("lacks \"stopped_early\"", "stopped_early", "stopped");
  refused("\"epoch\" is 7, expected a whole number in [0, 0]", "\"epoch\":0", "\"epoch\":7");
  refused("seconds is 1000000000000", "\"seconds\":0.0,", "\"seconds\":1e12,");
  refused("seconds is -1", "\"seconds\":0.0,", "\"seconds\":-1.0,");
  refused("\"samples\" is 9007199254740992, expected a whole number in [0, 0]",
          "\"samples\":0",
          "\"samples\":9007199254740992");
  refused("the checkpoint's epoch has used 9007199254740992 samples of 22",
          "\"batch\":0,\"steps\":6,\"loss_sum\":0.0,\"samples\":0",
          "\"batch\":1,\"steps\":6,\"loss_sum\":0.0,\"samples\":9007199254740992",
          "[fit] ");
  refused("\"value\" is true, expected a number", "\"value\":0.5", "\"value\":true");
}

TEST_CASE("a metric whose name is not UTF-8 is refused", "[layers][fit]") {
  const TemporaryFolder folder;
  for (const char* name : {"Pr\xe4zision", "Pr\xf6zision"}) {
    Training training;
    QUANTRAIN_CHECK_ERROR(training.fit({.evaluate =
                                            [&] {
                                              return Metrics{{name, 0.5}};
                                            },
                                        .log = folder / "log"}),
                          DataError,
                          "has a name that is not UTF-8");
  }
  CHECK(folder.files() == 0);
}

TEST_CASE("a long run keeps some reports, and its log all lines", "[layers][fit]") {
  std::vector<EpochReport> reports;
  for (int64_t epoch = 0; epoch < 70'000; ++epoch) {
    reports.push_back({.epoch = epoch, .metrics = {{"accuracy", 0.5}}});
    thin(reports);
    if (epoch == kMostReports - 1) CHECK(std::ssize(reports) == kMostReports);
  }
  CHECK(std::ssize(reports) <= kMostReports + 1);
  CHECK(std::ssize(reports) >= kMostReports / 2);
  CHECK(reports.back().epoch == 69'999);
  CHECK(reports[1].epoch == 64);
  const TrainingPosition position{.epochs = 70'000, .done = reports, .best = reports[3]};
  const std::string text = to_text(position);
  CHECK(text.size() < 1'000'000);
  const TrainingPosition again = position_from(text);
  CHECK(again.epochs == 70'000);
  CHECK(again.done.size() == reports.size());
  CHECK(again.best->epoch == reports[3].epoch);
  CHECK(to_text(again) == text);

  const TemporaryFolder folder;
  const std::string path = folder / "log";
  const auto log = [&] {
    const std::vector<uint8_t> bytes = read_bytes(path);
    return std::string(bytes.begin(), bytes.end());
  };
  const auto line = [](int64_t epoch) { return to_json({.epoch = epoch}) + '\n'; };
  EpochLog first(path);
  for (int64_t epoch = 0; epoch < 4; ++epoch) first.add({.epoch = epoch});
  CHECK(log() == line(0) + line(1) + line(2) + line(3));
  EpochLog second(path);
  second.resume({{.epoch = 0}, {.epoch = 2}}, 3);  // thinned
  second.add({.epoch = 3});
  CHECK(log() == line(0) + line(1) + line(2) + line(3));
  test::write_bytes(path, std::vector<uint8_t>{'x', '\n'});
  EpochLog third(path);
  third.resume({{.epoch = 0}, {.epoch = 2}}, 3);
  CHECK(log() == line(0) + line(2));
}

TEST_CASE("a run cannot be resumed with another metric for early stopping", "[layers][fit]") {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& metric, int64_t until) {
    Training training;
    training.fit({.epochs = 3,
                  .begin_epoch =
                      [&](int64_t epoch) {
                        if (epoch == until) throw DataError("test", "stopped");
                      },
                  .evaluate =
                      [&] {
                        return Metrics{{metric, 0.5}};
                      },
                  .early_stopping = {.metric = metric, .smaller_is_better = false},
                  .checkpoints = {.folder = folder.path(), .resume = true}});
  };
  QUANTRAIN_CHECK_ERROR(run("accuracy", 1), DataError, "stopped");
  QUANTRAIN_CHECK_ERROR(
      run("recall", 3), DataError, "the checkpoint's best epoch has no metric \"recall\"");
  run("accuracy", 3);
  run("recall", 3);  // the run has ended: nothing is trained
  QUANTRAIN_CHECK_ERROR(Training().fit({.evaluate =
                                            [] {
                                              return Metrics{{"error", 1.0}};
                                            },
                                        .early_stopping = {.metric = "error"}}),
                        DataError,
                        "smaller_is_better is not set: write true if \"error\" is an error");
}

TEST_CASE("a resumed run continues with the rate that callbacks have set", "[layers][fit]") {
  const auto run = [&](const TemporaryFolder& folder, int64_t until) {
    Training training;
    training.fit({.epochs = 4,
                  .begin_epoch =
                      [&](int64_t epoch) {
                        if (epoch == until) throw DataError("test", "stopped");
                      },
                  .evaluate =
                      [&] {
                        const float rate = training.optimizer.learning_rate();
                        training.optimizer.set_learning_rate(rate / 2.0f);
                        return Metrics{};
                      },
                  .checkpoints = {.folder = folder.path(), .resume = true}});
    return training.weights();
  };
  const TemporaryFolder whole;
  const TemporaryFolder parts;
  QUANTRAIN_CHECK_ERROR(run(parts, 2), DataError, "stopped");
  CHECK(run(parts, 4) == run(whole, 4));
}

TEST_CASE("without a schedule, a callback can set the learning rate", "[layers][fit]") {
  Training t;
  const FitResult result = t.fit({.epochs = 2, .begin_epoch = [&](int64_t epoch) {
                                    t.optimizer.set_learning_rate(epoch == 0 ? 0.5f : 0.25f);
                                  }});
  CHECK(result.epochs[0].learning_rate == 0.5f);
  CHECK(result.epochs[1].learning_rate == 0.25f);
}

TEST_CASE("a checkpoint is refused if the loader's batches are other ones now", "[layers][fit]") {
  const TemporaryFolder folder;
  const CheckpointOptions checkpoints{.folder = folder / "checkpoints", .every = 5};
  Training one;
  const auto stop = [](int64_t step, float) {
    if (step == 6) throw DataError("test", "stopped");
  };
  QUANTRAIN_CHECK_ERROR(
      one.fit({.after_step = stop, .checkpoints = checkpoints}), DataError, "stopped");
  Training other(8);
  CheckpointOptions resume = checkpoints;
  resume.resume = true;
  QUANTRAIN_CHECK_ERROR(other.fit({.checkpoints = resume}),
                        DataError,
                        "the checkpoint was taken with 22 samples, batch 4, seed 1, first epoch 0, "
                        "shuffle, and this run has 22 samples, batch 8, seed 1");
}

}  // namespace quantrain
