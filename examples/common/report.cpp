#include "examples/common/report.hpp"

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

#include "framework/core/path.hpp"
#include "framework/core/system/process.hpp"

namespace quantrain::examples {
namespace {

using Json = nlohmann::ordered_json;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Json to_json(const CallTimes& times) {
  Json json;
  for (size_t i = 0; i < std::size(times.microseconds); ++i) {
    json[std::to_string(CallTimes::kBatches[i])] = times.microseconds[i];
  }
  return json;
}

}  // namespace

std::string dataset_name(const std::string& folder) {
  const std::filesystem::path path = to_path(folder).lexically_normal();
  return to_text(path.has_filename() ? path.filename() : path.parent_path().filename());
}

CallTimes time_calls(int calls, const std::function<void(int64_t)>& call) {
  constexpr int kWarmUp = 3;
  CallTimes times;
  for (size_t i = 0; i < std::size(times.microseconds); ++i) {
    const int64_t batch = CallTimes::kBatches[i];
    std::vector<double> microseconds;
    for (int run = -kWarmUp; run < calls; ++run) {
      const auto start = std::chrono::steady_clock::now();
      call(batch);
      const std::chrono::duration<double, std::micro> elapsed =
          std::chrono::steady_clock::now() - start;
      if (run >= 0) microseconds.push_back(elapsed.count());
    }
    times.microseconds[i] = median(std::move(microseconds));
  }
  return times;
}

std::string to_json(const Report& report) {
  const quant::Parity& parity = report.parity;
  Json json;
  json["model"] = report.model;
  json["dataset"] = report.dataset;
  json["threads"] = report.threads;
  json["seed"] = report.seed;
  json["batch"] = report.batch;
  json["isa"] = report.isa;
  if (report.float_inputs) json["float_inputs"] = {{report.score, *report.float_inputs}};
  json["float"] = {{report.score, report.trained.accuracy},
                   {"seconds_per_epoch", report.trained.seconds_per_epoch}};
  json["ptq"] = {{report.score, report.ptq.accuracy}};
  json["qat"] = {{report.score, report.qat.accuracy},
                 {"seconds_per_epoch", report.qat.seconds_per_epoch}};
  json["integer"] = {{report.score, report.integer.accuracy},
                     {"weight_bits", report.integer.weight_bits},
                     {"activation_bits", report.integer.activation_bits},
                     {"size_bytes", report.integer.size_bytes},
                     {"memory_bytes", report.integer.memory_bytes},
                     {"microseconds_per_call", to_json(report.integer.times)}};
  json["float_inference"] = {{"microseconds_per_call", to_json(report.float_times)}};
  json["parity"] = {{"images", parity.images},
                    {"top1_disagreements", parity.top1_disagreements},
                    {"codes", parity.codes()},
                    {"codes_different", parity.codes_different()},
                    {"codes_equal", parity.codes_equal()},
                    {"max_code_difference", parity.max_code_difference()},
                    {"logits", parity.logits},
                    {"logits_different", parity.logits_different},
                    {"logits_equal", parity.logits_equal()},
                    {"max_logit_difference", parity.max_logit_difference},
                    {"first_difference", parity.first_difference()}};
  const quant::LayerParity* const saturated = parity.most_saturated();
  json["largest_saturated_share"] = {
      {"layer", saturated == nullptr ? "" : saturated->name},
      {"share", saturated == nullptr ? 0.0 : saturated->saturated_share()}};
  if (const quant::LayerParity* const noisiest = parity.noisiest()) {
    json["lowest_signal_to_noise"] = {{"layer", noisiest->name},
                                      {"decibels", noisiest->signal_to_noise()}};
  }
  json["measured_samples"] = parity.measured;
  if (const quant::LayerParity* const output = parity.noisiest_output()) {
    const int64_t channel = output->worst_channel();
    json["lowest_output"] = {
        {"layer", output->name},
        {"channel", channel},
        {"decibels", output->channels[static_cast<size_t>(channel)].signal_to_noise()}};
  }
  json["peak_rss_mib"] = static_cast<double>(system::peak_memory()) / 1048576.0;
  // A folder's name need not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::ostream& operator<<(std::ostream& stream, const Report& report) {
  const bool percent = report.score == "accuracy";
  const auto kib = [](int64_t bytes) { return static_cast<double>(bytes) / 1024.0; };
  const auto row = [&](const char* name, double score) -> std::ostream& {
    stream << std::left << std::setw(17) << name << std::right << std::setw(percent ? 8 : 10);
    if (percent) return stream << std::setprecision(2) << 100.0 * score << " %";
    return stream << std::setprecision(4) << score;
  };
  const std::ios_base::fmtflags flags = stream.flags();
  const std::streamsize precision = stream.precision();
  stream << std::fixed << std::setw(27) << report.score
         << "          size           RAM  time per sample\n";
  const auto microseconds = [&](const CallTimes& times) -> std::ostream& {
    const double each = times.per_sample();
    return stream << std::setprecision(each < 1.0 ? 3 : 1) << each << " us\n";
  };
  if (report.float_inputs) row("float inputs", *report.float_inputs) << '\n';
  row("float", report.trained.accuracy)
      << std::setprecision(1) << std::setw(10) << kib(report.trained.size_bytes) << " KiB"
      << std::setw(28);
  microseconds(report.float_times);
  row("PTQ", report.ptq.accuracy) << '\n';
  row("QAT (simulated)", report.qat.accuracy) << '\n';
  row("integer", report.integer.accuracy)
      << std::setprecision(1) << std::setw(10) << kib(report.integer.size_bytes) << " KiB"
      << std::setw(10) << kib(report.integer.memory_bytes) << " KiB" << std::setw(14);
  microseconds(report.integer.times);
  const quant::Parity& parity = report.parity;
  stream << "integers against simulation, " << parity.images
         << " samples: " << parity.codes_different() << " of " << parity.codes() << " codes, "
         << parity.logits_different << " of " << parity.logits << " logits, "
         << parity.top1_disagreements << " predictions differ\n";
  if (const quant::LayerParity* const noisiest = parity.noisiest()) {
    const quant::LayerParity* const saturated = parity.most_saturated();
    const double share = saturated == nullptr ? 0.0 : saturated->saturated_share();
    stream << "against float, " << parity.measured << " samples: " << std::setprecision(2)
           << 100.0 * share << " % saturate";
    if (saturated != nullptr) stream << " in \"" << saturated->name << '"';
    stream << ", signal-to-noise " << std::setprecision(1) << noisiest->signal_to_noise()
           << " dB in \"" << noisiest->name << "\"\n";
  }
  const quant::LayerParity* const output = parity.noisiest_output();
  if (output != nullptr && output->channels.size() > 1) {
    const int64_t channel = output->worst_channel();
    stream << "lowest output: " << output->name << '[' << channel << "], signal-to-noise "
           << std::setprecision(1)
           << output->channels[static_cast<size_t>(channel)].signal_to_noise() << " dB\n";
  }
  if (const std::string first = parity.first_difference(); !first.empty()) {
    stream << "first difference: \"" << first << "\"; codes are off by at most "
           << parity.max_code_difference() << ", logits by at most " << parity.max_logit_difference
           << '\n';
  }
  stream.flags(flags);
  stream.precision(precision);
  return stream;
}

}  // namespace quantrain::examples
