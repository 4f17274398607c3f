#include "framework/integer/model_profile.hpp"

#include <algorithm>
#include <chrono>
#include <ostream>

#include "framework/core/error.hpp"
#include "framework/core/text_table.hpp"

namespace quantrain {
namespace {

constexpr const char* kWhere = "profile";

int64_t count_samples(const IntegerModel& model, std::span<const std::span<const uint8_t>> x) {
  if (x.size() != model.input_count())
    throw ShapeError(kWhere, "the network has ", model.input_count(), " inputs, got ", x.size());
  const int64_t n = static_cast<int64_t>(x[0].size()) / model.input_shape().elements();
  for (size_t i = 0; i < x.size(); ++i) {
    const Shape& shape = model.input_shape(i);
    if (n < 1 || n > IntegerModel::kChunk ||
        static_cast<int64_t>(x[i].size()) != n * shape.elements()) {
      throw ShapeError(kWhere,
                       "input ",
                       i,
                       " has ",
                       x[i].size(),
                       " codes, expected the codes of 1 to ",
                       IntegerModel::kChunk,
                       " samples ",
                       shape,
                       ", and the same number of samples for each input");
    }
  }
  return n;
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

double ModelProfile::microseconds() const {
  double sum = 0.0;
  for (const Step& step : steps) sum += step.microseconds;
  return sum;
}

ModelProfile profile(const IntegerModel& model, std::span<const uint8_t> x, int calls) {
  return profile(model, std::span<const std::span<const uint8_t>>(&x, 1), calls);
}

ModelProfile profile(const IntegerModel& model,
                     std::span<const std::span<const uint8_t>> x,
                     int calls) {
  if (calls < 1) throw DataError(kWhere, "calls is ", calls, ", expected at least 1");
  using Clock = std::chrono::steady_clock;
  const integer::Program& program = model.program();
  ModelProfile result{.samples = count_samples(model, x), .calls = calls, .steps = {}};
  std::vector<const uint8_t*> inputs;
  for (const std::span<const uint8_t>& input : x) inputs.push_back(input.data());
  std::vector<std::vector<double>> times(program.steps.size());
  for (int call = -1; call < calls; ++call) {
    Clock::time_point last = Clock::now();
    model.trace(result.samples, inputs, [&](size_t step, const void*) {
      const Clock::time_point now = Clock::now();
      if (call >= 0)
        times[step].push_back(std::chrono::duration<double, std::micro>(now - last).count());
      last = Clock::now();
    });
  }
  for (size_t i = 0; i < times.size(); ++i) {
    const integer::Step& step = program.steps[i];
    result.steps.push_back({program.value(step.output).name,
                            std::string(integer::kernel(step.operation)),
                            median(times[i])});
  }
  return result;
}

std::ostream& operator<<(std::ostream& stream, const ModelProfile& profile) {
  const double total = profile.microseconds();
  TextTable table("llrr");
  table.add({"layer", "kernel", "us", "share"});
  for (const ModelProfile::Step& step : profile.steps) {
    table.add({step.name,
               step.kernel,
               decimals(step.microseconds, 1),
               decimals(total > 0.0 ? 100.0 * step.microseconds / total : 0.0, 1) + " %"});
  }
  table.add({"total", std::to_string(profile.samples) + " samples", decimals(total, 1)});
  return stream << table;
}

}  // namespace quantrain
