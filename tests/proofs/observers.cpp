#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "examples/common/flags.hpp"
#include "examples/common/training.hpp"
#include "framework/core/parallel.hpp"
#include "framework/data/loader.hpp"
#include "layers/evaluate.hpp"
#include "layers/init.hpp"
#include "layers/state.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/proofs/jobs.hpp"
#include "tests/proofs/proofs.hpp"
#include "tests/proofs/rare_events.hpp"
#include "tests/proofs/results.hpp"

namespace quantrain::proofs {
namespace {

/// A way to choose the ranges of activations. No observer: the default of the library.
struct Way {
  std::string name;
  std::optional<quant::ObserverSpec> observer;
  quant::Estimator estimator = quant::Estimator::kClamped;
};

std::vector<Way> ways_of_qat() {
  std::vector<Way> ways{{"default", {}}};
  for (const int batches : {16, 128, 1024})
    ways.push_back(
        {"recent " + std::to_string(batches), quant::RecentMinMaxOptions{.batches = batches}});
  for (const quant::ObserverSpec& spec : quant::observer_specs()) {
    if (!std::holds_alternative<quant::RecentMinMaxOptions>(spec))
      ways.push_back({std::string(quant::kind(spec)), spec});
  }
  ways.push_back({"learned", {}, quant::Estimator::kLearned});
  return ways;
}

std::vector<Way> ways_of_ptq() {
  std::vector<Way> ways{{"default", {}}};
  for (const quant::ObserverSpec& spec : quant::observer_specs())
    ways.push_back({std::string(quant::kind(spec)), spec});
  return ways;
}

quant::QConfig config_of(const Way& way, int bits) {
  quant::QConfig config = quant::QConfig::bits(bits, bits);
  config.model.activation.observer = way.observer;
  config.model.activation.estimator = way.estimator;
  return config;
}

/// What is trained and measured. Its functions run in several threads.
struct Subject {
  std::string name;
  std::string score;
  double cost = 1.0;  ///< of a training, for the order of jobs
  std::function<Sequential(uint64_t seed)> train;
  std::function<void(Sequential& net, uint64_t seed)> train_on;
  std::function<Sequential()> make;
  std::function<Tensor(uint64_t seed)> example;
  std::function<DataLoader(uint64_t seed)> calibration;
  std::function<double(Sequential& net, uint64_t seed)> measure;
};

/// The scores of one row of the table, by way and seed.
struct Row {
  const Subject* subject;
  int bits;
  bool qat;
  std::vector<std::vector<double>> scores;
};

double quantized_score(const Subject& subject,
                       Sequential& trained,
                       const Way& way,
                       int bits,
                       bool qat,
                       uint64_t seed) {
  Sequential net = subject.make();
  copy_state(trained, net);
  if (qat) {
    quant::prepare_qat(net, subject.example(seed), config_of(way, bits));
    subject.train_on(net, seed);
  } else {
    quant::prepare_ptq(net, subject.example(seed), config_of(way, bits));
    quant::calibrate(net, subject.calibration(seed));
  }
  const quant::DeployedMode deployed(net);
  return subject.measure(net, seed);
}

Subject subject_of(const examples::Network& network,
                   const Images& images,
                   const Training& training,
                   int64_t test) {
  constexpr int64_t kCalibrationImages = 1024;
  const Dataset measured =
      test > 0 ? images.test.first(std::min(test, images.test.size())) : images.test;
  const Dataset some = images.train.first(std::min(kCalibrationImages, images.train.size()));
  return {
      .name = images.name + ' ' + network.name,
      .score = "accuracy %",
      .cost = network.name == "mnist_cnn" ? 100.0 : 20.0,
      .train = [=](uint64_t seed) { return train_float(network, images, training, seed); },
      .train_on = [=](Sequential& net, uint64_t seed) { train_on(net, images, training, seed); },
      .make = network.make,
      .example = [=](uint64_t) { return example_of(images); },
      .calibration =
          [=](uint64_t) { return DataLoader(some, {.batch = examples::kEvaluationBatch}); },
      .measure = [=](Sequential& net,
                     uint64_t) { return 100.0 * examples::accuracy(net, measured); }};
}

Subject subject_of(RareEvents (*events)(uint64_t seed), const std::vector<uint64_t>& seeds) {
  std::map<uint64_t, RareEvents> made;
  for (const uint64_t seed : seeds) made.emplace(seed, events(seed));
  const auto all = std::make_shared<const std::map<uint64_t, RareEvents>>(std::move(made));
  const auto run = [all](
                       Sequential& net, uint64_t seed, int64_t first, int64_t epochs, float rate) {
    const RareEvents& data = all->at(seed);
    DataLoader loader(data.training, {.batch = 32, .shuffle = true, .seed = seed});
    examples::train(
        net,
        loader,
        {.epochs = epochs, .first_epoch = first, .learning_rate = rate, .loss = data.loss});
  };
  constexpr int64_t kEpochs = 40;
  const RareEvents& any = all->begin()->second;
  return {.name = any.name,
          .score = any.score,
          .train =
              [=](uint64_t seed) {
                manual_seed(seed);
                Sequential net = all->at(seed).make();
                run(net, seed, 0, kEpochs, 3e-3f);
                return net;
              },
          .train_on = [=](Sequential& net,
                          uint64_t seed) { run(net, seed, kEpochs, kEpochs / 4, 5e-4f); },
          .make = any.make,
          .example = [=](uint64_t seed) { return all->at(seed).training.batch(0, 1).input; },
          .calibration =
              [=](uint64_t seed) { return DataLoader(all->at(seed).training, {.batch = 256}); },
          .measure =
              [=](Sequential& net, uint64_t seed) {
                const RareEvents& data = all->at(seed);
                return data.measure(predict(net, DataLoader(data.rare, {.batch = 256})));
              }};
}

std::string mean_and_deviation(const std::vector<double>& values) {
  const auto [mean, deviation] = statistics(values);
  char text[64];
  std::snprintf(text, sizeof text, mean < 10.0 ? "%.3f+-%.3f" : "%.2f+-%.2f", mean, deviation);
  return text;
}

void print_table(const char* title,
                 const std::vector<Way>& ways,
                 const std::vector<Row>& rows,
                 const std::map<const Subject*, std::vector<double>>& floats) {
  std::printf("\n%s\n%-28s %-10s %4s %15s", title, "data and network", "score", "bits", "float");
  for (const Way& way : ways) std::printf(" %15s", way.name.c_str());
  std::printf("\n");
  for (const Row& row : rows) {
    std::printf("%-28s %-10s %4d %15s",
                row.subject->name.c_str(),
                row.subject->score.c_str(),
                row.bits,
                mean_and_deviation(floats.at(row.subject)).c_str());
    for (const std::vector<double>& scores : row.scores)
      std::printf(" %15s", mean_and_deviation(scores).c_str());
    std::printf("\n");
  }
}

}  // namespace

void measure_observers(const Subjects& subjects, const ObserverOptions& options) {
  std::vector<Subject> measured;
  if (options.images) {
    for (const Images& images : subjects.data) {
      for (const examples::Network& network : subjects.networks)
        measured.push_back(subject_of(network, images, options.training, options.test));
    }
  }
  if (options.rare) {
    measured.push_back(subject_of(rare_steps, options.seeds));
    measured.push_back(subject_of(rare_peaks, options.seeds));
  }

  const size_t seeds = options.seeds.size();
  const std::vector<Way> ways[2] = {ways_of_ptq(), ways_of_qat()};
  std::map<const Subject*, std::vector<double>> floats;
  std::vector<Row> rows[2];
  for (const Subject& subject : measured) {
    floats[&subject].resize(seeds);
    for (const int bits : options.bits) {
      for (const bool qat : {false, true}) {
        const std::vector<std::vector<double>> scores(ways[qat].size(), std::vector<double>(seeds));
        rows[qat].push_back({&subject, bits, qat, scores});
      }
    }
  }

  Jobs jobs;
  std::mutex printing;
  const auto report = [&](const Subject& subject, const std::string& what, size_t i, double score) {
    const std::lock_guard lock(printing);
    std::fprintf(stderr,
                 "%s, %s, seed %llu: %.4f\n",
                 subject.name.c_str(),
                 what.c_str(),
                 static_cast<unsigned long long>(options.seeds[i]),
                 score);
  };
  const auto add_row = [&](Row& row, size_t i, const std::shared_ptr<Sequential>& trained) {
    for (size_t w = 0; w < row.scores.size(); ++w) {
      jobs.add(row.subject->cost * (row.qat ? 1.0 : 0.2), [&, i, w, trained] {
        const Way& way = ways[row.qat][w];
        const uint64_t seed = options.seeds[i];
        const double score = quantized_score(*row.subject, *trained, way, row.bits, row.qat, seed);
        row.scores[w][i] = score;
        const std::string what =
            (row.qat ? "QAT W" : "PTQ W") + std::to_string(row.bits) + ' ' + way.name;
        report(*row.subject, what, i, score);
      });
    }
  };
  for (const Subject& subject : measured) {
    for (size_t i = 0; i < seeds; ++i) {
      jobs.add(1000.0 * subject.cost, [&, i] {
        auto trained = std::make_shared<Sequential>(subject.train(options.seeds[i]));
        const double score = subject.measure(*trained, options.seeds[i]);
        floats.at(&subject)[i] = score;
        report(subject, "float", i, score);
        for (std::vector<Row>& each : rows) {
          for (Row& row : each) {
            if (row.subject == &subject) add_row(row, i, trained);
          }
        }
      });
    }
  }
  jobs.run(threads());
  print_table("After QAT", ways[1], rows[1], floats);
  print_table("After quantization without training", ways[0], rows[0], floats);
}

}  // namespace quantrain::proofs
