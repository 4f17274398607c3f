#include "layers/training/position.hpp"

#include <utility>

#include "framework/core/error.hpp"
#include "framework/io/json.hpp"
#include "framework/io/json_writer.hpp"

namespace quantrain {
namespace {

constexpr int64_t kMost = int64_t{1} << 53;

double seconds_from(JsonReader& reader, const JsonError& error) {
  constexpr double kMostSeconds = 1e9;
  const double seconds = reader.real("seconds");
  if (seconds >= 0.0 && seconds <= kMostSeconds) return seconds;
  std::rethrow_exception(
      error("seconds is " + std::to_string(seconds) + ", expected a number from 0 to 1e9"));
}

EpochReport epoch_from(const JsonValue& json,
                       const JsonError& error,
                       int64_t least,
                       int64_t most = kMost) {
  JsonReader reader(json, error);
  EpochReport report{.epoch = reader.integer("epoch", least, most),
                     .steps = reader.integer("steps", 0, kMost),
                     .loss = reader.real("loss"),
                     .learning_rate = reader.real32("learning_rate"),
                     .seconds = seconds_from(reader, error)};
  for (const JsonValue& metric : reader.list("metrics", 1000)) {
    JsonReader pair(metric, error);
    const std::string name = pair.text("name");
    report.metrics[name] = pair.real("value");
    pair.finish();
  }
  reader.finish();
  return report;
}

void read_epochs(JsonReader& reader, const JsonError& error, TrainingPosition& position) {
  const int64_t best = reader.integer("best_epoch", -1, kMost);
  const std::vector<JsonValue> epochs = reader.list("epochs", 1'000'000);
  const auto count = static_cast<int64_t>(epochs.size());
  // Early checkpoints have all epochs in the list.
  const bool early = !reader.has("done");
  position.epochs = early ? count : reader.integer("done", count, kMost);
  for (const JsonValue& epoch : epochs) {
    const int64_t least = position.done.empty() ? 0 : position.done.back().epoch + 1;
    position.done.push_back(epoch_from(epoch, error, least, position.epochs - 1));
    if (position.done.back().epoch == best) position.best = position.done.back();
  }
  const auto refuse = [&] { std::rethrow_exception(error("no epoch " + std::to_string(best))); };
  if (best >= position.epochs) refuse();
  if (!early) {
    for (const JsonValue& epoch : reader.list("best", 1))
      position.best = epoch_from(epoch, error, best, best);
  }
  if (position.best.has_value() != (best >= 0)) refuse();
  thin(position.done);
}

}  // namespace

void thin(std::vector<EpochReport>& reports) {
  if (reports.empty()) return;
  const int64_t last = reports.back().epoch;
  int64_t every = 1;
  while (last / every >= kMostReports) every *= 2;
  std::erase_if(reports, [&](const EpochReport& report) {
    return report.epoch % every != 0 && report.epoch != last;
  });
}

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
  const auto best = [&] {
    if (position.best) write_epoch(*position.best);
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
    json.member("best_epoch", position.best ? position.best->epoch : -1);
    json.member("best", [&] { json.list(best); });
    json.member("stopped_early", position.stopped_early);
    json.member("ended", position.ended);
    json.member("done", position.epochs);
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
    // Each batch has a sample.
    position.samples = reader.integer("samples", position.batch, position.batch == 0 ? 0 : kMost);
    position.seconds = seconds_from(reader, error);
    position.learning_rate = reader.real32("learning_rate");
    position.stopped_early = reader.boolean("stopped_early");
    position.ended = reader.boolean("ended");
    read_epochs(reader, error, position);
    reader.finish();
    return position;
  } catch (const JsonDocument::Malformed& problem) {
    throw DataError("checkpoint's position", problem.text);
  }
}

}  // namespace quantrain
