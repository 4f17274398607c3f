#include "layers/training/settings.hpp"

#include <algorithm>
#include <span>

#include "framework/core/hash.hpp"
#include "framework/core/text_stream.hpp"

namespace quantrain {
namespace {

template <class... Parts>
std::string text_of(const Parts&... parts) {
  TextStream text;
  (text << ... << parts);
  return text.str();
}

template <class T>
void add_bytes(Fnv1a& hash, const T* values, int64_t n) {
  hash.add(std::span(reinterpret_cast<const uint8_t*>(values), static_cast<size_t>(n) * sizeof(T)));
}

/// A hash of some samples with their labels and targets.
std::string hash_of(const BatchSource& source, int64_t samples) {
  constexpr int64_t kHashed = 64;
  const int64_t n = std::min(samples, kHashed);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < n; ++i) indices.push_back(samples / n * i + samples % n * i / n);
  const Batch batch = source.read({})(indices);
  Fnv1a hash;
  const auto add = [&hash](const Tensor& tensor) {
    if (!tensor.defined()) return;
    const Floats values = tensor.floats();
    add_bytes(hash, values.data(), values.size());
  };
  for (const Tensor& input : batch.inputs()) add(input);
  for (const Tensor& target : batch.targets) add(target);
  add_bytes(hash, batch.labels.data(), std::ssize(batch.labels));
  return std::to_string(hash.value());
}

std::string rate_of(const FitOptions& options, const DataLoader& loader, float learning_rate) {
  if (!options.schedule) return text_of(learning_rate);
  const int64_t of_epoch = (loader.batches() + options.accumulate - 1) / options.accumulate;
  const int64_t all = of_epoch * options.epochs;
  const int64_t steps = options.steps > 0 ? std::min(options.steps, all) : all;
  return text_of(options.schedule(0),
                 " to ",
                 options.schedule(steps / 2),
                 " to ",
                 options.schedule(steps - 1));
}

}  // namespace

RunSettings run_settings(const FitOptions& options, const DataLoader& loader, float learning_rate) {
  const LoaderOptions& batches = loader.options();
  const EarlyStopping& early = options.early_stopping;
  const int64_t samples = loader.samples().value_or(0);
  const auto yes = [](bool value) { return std::string(value ? "on" : "off"); };
  const std::shared_ptr<const BatchSource> source = loader.source();
  return {{"epochs", text_of(options.epochs)},
          {"steps", text_of(options.steps)},
          {"accumulate", text_of(options.accumulate)},
          {"shards", text_of(options.shards)},
          {"first_epoch", text_of(options.first_epoch)},
          {"learning rate", rate_of(options, loader, learning_rate)},
          {"clip_norm", text_of(options.clip_norm)},
          {"early_stopping",
           early.metric.empty() ? "off" : text_of(early.metric, " with patience ", early.patience)},
          {"samples", text_of(samples)},
          {"hash of the data", source->any_order() ? hash_of(*source, samples) : "none"},
          {"batch", text_of(batches.batch)},
          {"shuffle", yes(batches.shuffle)},
          {"seed", text_of(batches.seed)},
          {"drop_last", yes(batches.drop_last)},
          {"merge_last", yes(batches.merge_last)},
          {"augment", yes(batches.augment != nullptr)},
          {"mixup", text_of(batches.mixup)}};
}

std::string differences(const RunSettings& before, const RunSettings& now) {
  TextStream text;
  bool any = false;
  for (const auto& setting : now) {
    const auto old = std::find_if(before.begin(), before.end(), [&](const auto& entry) {
      return entry.first == setting.first;
    });
    if (old == before.end() || old->second == setting.second) continue;
    text << (any ? ", " : "") << setting.first << " was " << old->second << " and is "
         << setting.second;
    any = true;
  }
  return text.str();
}

}  // namespace quantrain
