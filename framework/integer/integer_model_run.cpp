#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/rounding.hpp"
#include "framework/integer/classes.hpp"
#include "framework/integer/integer_model_ready.hpp"
#include "framework/integer/saturation.hpp"

// The part of IntegerModel that runs. Unlike the rest, it is compiled for speed.
namespace quantrain {

using integer::MemoryPlan;
using integer::Program;
using integer::Step;
using integer::Value;

namespace {

constexpr const char* kWhere = "IntegerModel";

/// A small array. It allocates only if it has more than four elements, because an allocation would
/// be noticeable in a run of one sample.
template <class T>
class Few {
 public:
  explicit Few(size_t size) : size_(size) {
    if (size > kFew) many_ = Buffer<T>(static_cast<int64_t>(size));
  }
  T* data() { return size_ > kFew ? many_.data() : few_; }
  T& operator[](size_t i) { return data()[i]; }
  operator std::span<T>() { return {data(), size_}; }
  operator std::span<const T>() { return {data(), size_}; }

 private:
  static constexpr size_t kFew = 4;
  size_t size_;
  T few_[kFew];
  Buffer<T> many_;
};

size_t columns_of(const Value& input) {
  return input.shape.rank() > 0 ? static_cast<size_t>(input.shape.back()) : 1;
}

/// Products of bits read only the lowest bit of a code, and other products all of it. So other
/// codes of an input of 1 bit would give different integers on different instruction sets.
[[gnu::noinline]] void check_bits(const Value& input, const uint8_t* x, int64_t count) {
  if (input.params->type.bits != 1) return;
  const auto* const other = std::find_if(x, x + count, [](uint8_t code) { return code > 1; });
  if (other == x + count) return;
  throw DataError(
      kWhere, "input \"", input.name, "\" takes codes of 1 bit, 0 and 1, got ", int{*other});
}

}  // namespace

/// Counts the values of a call that saturate.
struct IntegerModel::Saturation {
  Saturation(size_t inputs, Outside outside_) : outside(outside_), of_input(inputs) {
    std::fill_n(of_input.data(), inputs, 0);
  }
  /// The first call of several that belong together says how many samples they have.
  [[gnu::noinline]] void begin(const Program& program, int64_t n) {
    if (call > 0) return;
    call = n;
    if (!integer::needs_columns(outside, n)) return;
    size_t all = 0;
    for (const int id : program.inputs) all += columns_of(program.value(id));
    columns = Buffer<int64_t>(static_cast<int64_t>(all));
    std::fill_n(columns.data(), all, 0);
  }
  std::span<int64_t> columns_at(const Program& program, size_t input) {
    if (columns.size() == 0) return {};
    size_t first = 0;
    for (size_t i = 0; i < input; ++i) first += columns_of(program.value(program.inputs[i]));
    return {columns.data() + first, columns_of(program.value(program.inputs[input]))};
  }
  [[gnu::noinline]] void add(const Program& program,
                             size_t input,
                             std::span<const float> x,
                             int64_t count) {
    if (count == 0) return;
    std::atomic_ref(of_input[input]).fetch_add(count, std::memory_order_relaxed);
    const Value& value = program.value(program.inputs[input]);
    if (columns.size() > 0)
      integer::count_columns(x, *value.params, value.features, columns_at(program, input));
  }
  [[gnu::noinline]] void check(const Program& program, size_t input, int64_t values) {
    const Value& value = program.value(program.inputs[input]);
    integer::check_outside(outside,
                           {.values = values,
                            .outside = of_input[input],
                            .samples = call,
                            .columns = columns_at(program, input)},
                           *value.params,
                           value.features,
                           kWhere,
                           value.name);
  }
  int64_t total() {
    const std::span<const int64_t> all = of_input;
    return std::accumulate(all.begin(), all.end(), int64_t{0});
  }

  Outside outside;
  int64_t samples = 0;  // so far
  int64_t call = 0;     // samples of the whole call
  Few<int64_t> of_input;
  Buffer<int64_t> columns{};  // of all inputs, if the rule needs them
};

int64_t IntegerModel::quantize_input(std::span<const float> x,
                                     std::span<uint8_t> codes,
                                     size_t i) const {
  return integer::encode_input(x, input_params(i), input_features(i), codes, kWhere);
}

void IntegerModel::run_chunk(int64_t n,
                             std::span<const uint8_t* const> x,
                             std::span<int32_t* const> y,
                             uint8_t* memory,
                             const Visitor* visit) const {
  const Program& p = ready_->program;
  const MemoryPlan& plan = ready_->plan;
  // Accumulators of an output are written directly to y.
  const auto direct = [&](int id) -> int32_t* {
    const int output = ready_->output_of[static_cast<size_t>(id)];
    return output >= 0 && !y.empty() && !p.value(id).is_codes() ? y[static_cast<size_t>(output)]
                                                                : nullptr;
  };
  const auto source = [&](int id) -> const uint8_t* {
    const int root = plan.roots[static_cast<size_t>(id)];
    const int input = ready_->input_of[static_cast<size_t>(root)];
    return input >= 0 ? x[static_cast<size_t>(input)] : memory + plan.offset(id, n);
  };
  for (size_t i = 0; i < p.steps.size(); ++i) {
    const Step& step = p.steps[i];
    Few<const uint8_t*> inputs(step.inputs.size());
    for (size_t k = 0; k < step.inputs.size(); ++k) inputs[k] = source(step.inputs[k]);
    const void* written = inputs[0];
    if (!std::holds_alternative<integer::View>(step.operation)) {
      void* const there = direct(step.output);
      void* const output = there != nullptr ? there : memory + plan.offset(step.output, n);
      std::optional<SerialLoops> alone;
      if (n < ready_->least_to_share[i]) alone.emplace();
      ready_->operations[i].run(n, inputs, output);
      written = output;
    }
    if (visit != nullptr) (*visit)(i, written);
  }
  for (size_t i = 0; i < y.size(); ++i) {
    const Value& value = p.value(p.outputs[i]);
    const int64_t count = n * ready_->output_elements[i];
    if (value.is_codes()) {
      const uint8_t* const codes = source(p.outputs[i]);
      const int32_t zero = stored_zero_point(*value.params);
      for (int64_t k = 0; k < count; ++k) y[i][k] = codes[k] - zero;
    } else if (direct(p.outputs[i]) != y[i]) {  // a value that is an output twice
      std::copy_n(direct(p.outputs[i]), count, y[i]);
    }
  }
}

int64_t IntegerModel::samples(std::span<const size_t> x, std::span<const size_t> y) const {
  const Program& p = ready_->program;
  if (x.size() != p.inputs.size() || y.size() != p.outputs.size()) {
    throw ShapeError(kWhere,
                     "the network has ",
                     p.inputs.size(),
                     " inputs and ",
                     p.outputs.size(),
                     " outputs, got ",
                     x.size(),
                     " and ",
                     y.size(),
                     ": call run() with a list of inputs and a list of outputs");
  }
  int64_t n = -1;
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t elements = ready_->input_elements[i];
    const auto given = static_cast<int64_t>(x[i]);
    const int64_t count = given / elements;
    if (given % elements != 0) {
      throw ShapeError(
          kWhere, given, " elements are not a whole number of samples ", input_shape(i));
    }
    if (n >= 0 && count != n)
      throw ShapeError(kWhere, "input ", i, " has ", count, " samples, input 0 has ", n);
    n = count;
  }
  for (size_t i = 0; i < y.size(); ++i) {
    // Divides, because the product could wrap around.
    const auto room = static_cast<int64_t>(y[i]);
    const int64_t elements = ready_->output_elements[i];
    if (room % elements != 0 || room / elements != n) {
      throw ShapeError(kWhere,
                       n,
                       " samples give ",
                       output_size(i),
                       " numbers each, but there is room for ",
                       y[i]);
    }
  }
  return n;
}

template <class Input, class Output>
void IntegerModel::run_all(std::span<const std::span<const Input>> x,
                           std::span<const std::span<Output>> y,
                           [[maybe_unused]] Saturation* saturation) const {
  Few<size_t> x_sizes(x.size());
  Few<size_t> y_sizes(y.size());
  for (size_t i = 0; i < x.size(); ++i) x_sizes[i] = x[i].size();
  for (size_t i = 0; i < y.size(); ++i) y_sizes[i] = y[i].size();
  const int64_t n = samples(x_sizes, y_sizes);
  if (n == 0) return;
  const Program& p = ready_->program;
  if constexpr (std::is_same_v<Input, float>) {
    saturation->begin(p, n);
  } else {
    for (size_t i = 0; i < x.size(); ++i)
      check_bits(p.value(p.inputs[i]), x[i].data(), std::ssize(x[i]));
  }
  const DefaultRounding rounding;
  const std::vector<int64_t>& output_elements = ready_->output_elements;
  const int64_t chunk = std::min(n, kChunk);
  Buffer<uint8_t> memory(chunk * ready_->plan.sample_bytes);
  Few<int64_t> first_integer(y.size());  // where each output begins in `integers`; for floats only
  int64_t integer_count = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    first_integer[i] = integer_count;
    if constexpr (!std::is_same_v<Output, int32_t>) integer_count += chunk * output_elements[i];
  }
  Buffer<int32_t> integers;
  if (integer_count > 0) integers = Buffer<int32_t>(integer_count);
  for (int64_t first = 0; first < n; first += chunk) {
    const int64_t count = std::min(chunk, n - first);
    const int64_t tasks = integer::sample_tasks(ready_->least_samples, count);
    // Calls body(begin, samples, place) for the samples of each task; place is the task's memory.
    const auto for_tasks = [&](const auto& body) {
      if (tasks == 1) return body(int64_t{0}, count, memory.data());
      parallel_for(tasks, 1, [&](int64_t task, int64_t) {
        const SerialLoops serial;
        const int64_t begin = count * task / tasks;
        const int64_t end = count * (task + 1) / tasks;
        body(begin, end - begin, memory.data() + begin * ready_->plan.sample_bytes);
      });
    };
    const auto codes = [&](size_t i, int64_t samples, uint8_t* place) {
      return place + ready_->plan.offset(p.inputs[i], samples);
    };
    // All inputs of a chunk are converted before its first step runs.
    if constexpr (std::is_same_v<Input, float>) {
      for_tasks([&](int64_t begin, int64_t samples, uint8_t* place) {
        for (size_t i = 0; i < x.size(); ++i) {
          const int64_t sample = ready_->input_elements[i];
          const auto part = x[i].subspan(static_cast<size_t>((first + begin) * sample),
                                         static_cast<size_t>(samples * sample));
          const int64_t outside = quantize_input(part, {codes(i, samples, place), part.size()}, i);
          saturation->add(p, i, part, outside);
        }
      });
      saturation->samples += count;
      // Whether most values saturate is known after the last sample; a refusal must not depend on
      // the order of the samples.
      const bool known =
          saturation->samples == saturation->call || saturation->outside == Outside::kRefuse;
      for (size_t i = 0; known && i < x.size(); ++i)
        saturation->check(p, i, saturation->samples * ready_->input_elements[i]);
    }
    for_tasks([&](int64_t begin, int64_t samples, uint8_t* place) {
      Few<const uint8_t*> inputs(x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        if constexpr (std::is_same_v<Input, float>) {
          inputs[i] = codes(i, samples, place);
        } else {
          inputs[i] = x[i].data() + (first + begin) * ready_->input_elements[i];
        }
      }
      Few<int32_t*> results(y.size());
      for (size_t i = 0; i < y.size(); ++i) {
        if constexpr (std::is_same_v<Output, int32_t>) {
          results[i] = y[i].data() + (first + begin) * output_elements[i];
        } else {
          results[i] = integers.data() + first_integer[i] + begin * output_elements[i];
        }
      }
      run_chunk(samples, inputs, results, place, nullptr);
      if constexpr (!std::is_same_v<Output, int32_t>) {
        for (size_t i = 0; i < y.size(); ++i) {
          const Value& value = p.value(p.outputs[i]);
          const int64_t channels = value.params ? 1 : static_cast<int64_t>(value.scale.size());
          Output* const real = y[i].data() + (first + begin) * output_elements[i];
          for (int64_t k = 0; k < samples * output_elements[i]; ++k) {
            const double scale = value.params ? static_cast<double>(value.params->scale[0])
                                              : value.scale[static_cast<size_t>(k % channels)];
            real[k] = static_cast<Output>(scale * results[i][k]);
          }
        }
      }
    });
  }
}

int64_t IntegerModel::run(std::span<const float> x, std::span<int32_t> y, Outside outside) const {
  Saturation saturation(1, outside);
  run_all<float, int32_t>({&x, 1}, {&y, 1}, &saturation);
  return saturation.total();
}
int64_t IntegerModel::run(std::span<const float> x, std::span<float> y, Outside outside) const {
  Saturation saturation(1, outside);
  run_all<float, float>({&x, 1}, {&y, 1}, &saturation);
  return saturation.total();
}
int64_t IntegerModel::run(std::span<const std::span<const float>> x,
                          std::span<const std::span<float>> y,
                          Outside outside) const {
  Saturation saturation(x.size(), outside);
  run_all<float, float>(x, y, &saturation);
  return saturation.total();
}
void IntegerModel::run_codes(std::span<const uint8_t> x, std::span<int32_t> y) const {
  run_all<uint8_t, int32_t>({&x, 1}, {&y, 1});
}
void IntegerModel::run_codes(std::span<const uint8_t> x, std::span<float> y) const {
  run_all<uint8_t, float>({&x, 1}, {&y, 1});
}
void IntegerModel::run_codes(std::span<const std::span<const uint8_t>> x,
                             std::span<const std::span<int32_t>> y) const {
  run_all<uint8_t, int32_t>(x, y);
}

template <class Input>
void IntegerModel::classify_all(std::span<const Input> x,
                                std::span<int32_t> classes,
                                [[maybe_unused]] Saturation* saturation) const {
  const int64_t n = samples_to_classify(x.size(), classes.size());
  if (n == 0) return;
  const size_t sample = x.size() / static_cast<size_t>(n);
  const size_t rows = classes.size() / static_cast<size_t>(n);
  if constexpr (std::is_same_v<Input, float>) saturation->begin(program(), n);
  Buffer<int32_t> logits(std::min(n, kChunk) * output_size());
  for (int64_t left = n; left > 0; left -= kChunk) {
    const auto some = static_cast<size_t>(std::min(left, kChunk));
    const std::span<const Input> from = x.first(some * sample);
    const std::span<int32_t> to(logits.data(), some * static_cast<size_t>(output_size()));
    if constexpr (std::is_same_v<Input, float>)
      run_all<float, int32_t>({&from, 1}, {&to, 1}, saturation);
    else
      run_codes(from, to);
    integer::classify(program().value(program().outputs[0]), to, classes.data());
    x = x.subspan(some * sample);
    classes = classes.subspan(some * rows);
  }
}

int64_t IntegerModel::classify(std::span<const float> x,
                               std::span<int32_t> classes,
                               Outside outside) const {
  Saturation saturation(1, outside);
  classify_all(x, classes, &saturation);
  return saturation.total();
}

void IntegerModel::classify_codes(std::span<const uint8_t> x, std::span<int32_t> classes) const {
  classify_all(x, classes);
}

void IntegerModel::trace(int64_t n, std::span<const uint8_t* const> x, const Visitor& visit) const {
  if (n < 0 || n > kChunk)
    throw ShapeError(kWhere, "trace takes 0 to ", kChunk, " samples, got ", n);
  if (!visit) throw DataError(kWhere, "trace has no function to call with the results");
  if (x.size() != input_count())
    throw ShapeError(kWhere, "the network has ", input_count(), " inputs, got ", x.size());
  const Program& p = ready_->program;
  for (size_t i = 0; i < x.size(); ++i)
    check_bits(p.value(p.inputs[i]), x[i], n * ready_->input_elements[i]);
  Buffer<uint8_t> memory(n * ready_->plan.sample_bytes);
  run_chunk(n, x, {}, memory.data(), &visit);
}

}  // namespace quantrain
