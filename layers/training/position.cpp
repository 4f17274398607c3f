#include "layers/training/position.hpp"

#include <utility>

#include "framework/core/error.hpp"
#include "framework/io/json.hpp"
#include "framework/io/json_writer.hpp"

namespace quantrain {
namespace {

constexpr int64_t kMost = int64_t{1} << 53;

EpochReport epoch_from(const JsonValue& json, const JsonError& error, int64_t epoch) {
  JsonReader reader(json, error);
  EpochReport report{.epoch = reader.integer("epoch", epoch, epoch),
                     .steps = reader.integer("steps", 0, kMost),
                     .loss = reader.real("loss"),
                     .learning_rate = reader.real32("learning_rate"),
                     .seconds = reader.real("seconds")};
  for (const JsonValue& metric : reader.list("metrics", 1000)) {
    JsonReader pair(metric, error);
    const std::string name = pair.text("name");
    report.metrics[name] = pair.real("value");
    pair.finish();
  }
  reader.finish();
  return report;
}

}  // namespace

std::string to_text(const TrainingPosition& position) {
  JsonWriter json;
  const auto write_metric = [&](const std::string& name, double value) {
    json.object([&] {
      json.member("name", name);
      json.member("value", value);
    });
  };
  const auto write_epoch = [&](const EpochReport& report) {
    const auto metrics = [&] {
      for (const auto& [name, value] : report.metrics) write_metric(name, value);
    };
    json.object([&] {
      write_members(json, report);
      json.member("metrics", [&] { json.list(metrics); });
    });
  };
  const auto epochs = [&] {
    for (const EpochReport& report : position.done) write_epoch(report);
  };
  const auto settings = [&] {
    for (const auto& setting : position.settings) {
      json.object([&] {
        json.member("name", setting.first);
        json.member("value", setting.second);
      });
    }
  };
  json.object([&] {
    json.member("loader", position.loader);
    json.member("settings", [&] { json.list(settings); });
    json.member("batch", position.batch);
    json.member("steps", position.steps);
    json.member("loss_sum", position.loss_sum);
    json.member("samples", position.samples);
    json.member("seconds", position.seconds);
    json.member("learning_rate", position.learning_rate);
    json.member("best_epoch", position.best_epoch.value_or(-1));
    json.member("stopped_early", position.stopped_early);
    json.member("ended", position.ended);
    json.member("epochs", [&] { json.list(epochs); });
  });
  return std::move(json).text();
}

TrainingPosition position_from(const std::string& text) {
  const JsonError error = json_error<DataError>("checkpoint's position");
  try {
    // A checkpoint's header, which is smaller than 16 MiB, holds fewer values.
    const JsonDocument document(text, {.values = int64_t{1} << 22});
    JsonReader reader(document.root(), error);
    TrainingPosition position;
    position.loader = reader.text("loader");
    if (reader.has("settings")) {
      for (const JsonValue& setting : reader.list("settings", 1000)) {
        JsonReader pair(setting, error);
        const std::string name = pair.text("name");
        position.settings.emplace_back(name, pair.text("value"));
        pair.finish();
      }
    }
    position.batch = reader.integer("batch", 0, kMost);
    position.steps = reader.integer("steps", 0, kMost);
    position.loss_sum = reader.real("loss_sum");
    position.samples = reader.integer("samples", 0, kMost);
    position.seconds = reader.real("seconds");
    position.learning_rate = reader.real32("learning_rate");
    position.stopped_early = reader.boolean("stopped_early");
    position.ended = reader.boolean("ended");
    const int64_t best = reader.integer("best_epoch", -1, kMost);
    if (best >= 0) position.best_epoch = best;
    for (const JsonValue& epoch : reader.list("epochs", 1'000'000))
      position.done.push_back(epoch_from(epoch, error, position.epoch()));
    reader.finish();
    if (best >= position.epoch()) throw DataError("checkpoint's position", "no epoch ", best);
    return position;
  } catch (const JsonDocument::Malformed& problem) {
    throw DataError("checkpoint's position", problem.text);
  }
}

}  // namespace quantrain
