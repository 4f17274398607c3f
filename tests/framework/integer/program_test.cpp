#include "framework/integer/program.hpp"

#include <functional>
#include <set>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/floats.hpp"
#include "tests/framework/integer/programs.hpp"

namespace quantrain::integer {
namespace {

using quantrain::test::kInfinity;
using quantrain::test::kNan;
using test::Builder;
using test::edit;
using test::every_operation;
using test::kSigned;
using test::kX;
using test::kY;
using test::random_program;
using test::RandomProduct;
using namespace test::every;

template <class Op>
Op& step(Program& p, ValueId output) {
  for (Step& s : p.steps) {
    if (s.output == output) return std::get<Op>(s.operation);
  }
  throw std::logic_error("no such step");
}

Step& step_of(Program& p, ValueId output) {
  for (Step& s : p.steps) {
    if (s.output == output) return s;
  }
  throw std::logic_error("no such step");
}

/// Counts the numbers that describe() lists, and adds 1 to the number at position `target`.
class Mutator {
 public:
  explicit Mutator(int64_t target) : target_(target) {}
  int64_t count() const { return next_; }

  template <class T>
  void operator()(const char*, T& value) requires std::is_integral_v<T> {
    change(value);
  }
  void optional(const char*, int64_t& value, int64_t) { change(value); }
  bool are_two(const char*, const auto& operands) { return operands.size() == 2; }
  void operator()(const char*, std::vector<int32_t>& values) { each(values); }
  void words(const char*, SharedArray<int32_t>& values) { shared(values); }
  void bytes(const char*, SharedArray<int32_t>& values) { shared(values); }
  void operator()(const char*, SharedArray<int32_t>& values) { shared(values); }
  void operator()(const char*, Constant& constant) {
    int bits = constant.bits();
    change(bits);
    std::vector<int8_t> values = constant.values();
    each(values);
    constant = {std::move(values), bits};
  }
  void operator()(const char*, std::vector<uint8_t>& values) { each(values); }
  void operator()(const char*, StoredOutput& y) {
    change(y.zero_point);
    change(y.lo);
    change(y.hi);
  }
  void operator()(const char*, std::optional<Requantization>& output) {
    if (output) Requantization::describe(*output, *this);
  }
  template <class Entry>
  void operator()(const char*, std::vector<Entry>& entries) {
    for (Entry& entry : entries) Entry::describe(entry, *this);
  }
  void operator()(const char*, std::vector<kernels::MeanMultiplier>& means) {
    for (auto& mean : means) {
      change(mean.count);
      change(mean.multiplier.m0);
      change(mean.multiplier.shift);
    }
  }

 private:
  template <class T>
  void change(T& value) {
    if (next_++ == target_) value = static_cast<T>(value + 1);
  }
  void each(auto& values) {
    for (auto& value : values) change(value);
  }
  void shared(SharedArray<int32_t>& values) {
    edit(values, [&](auto& copy) { each(copy); });
  }

  int64_t target_;
  int64_t next_ = 0;
};

int64_t mutate(Operation& operation, int64_t target) {
  Mutator mutator(target);
  std::visit([&](auto& op) { op.describe(op, mutator); }, operation);
  return mutator.count();
}

}  // namespace

TEST_CASE("programs of every operation are valid", "[integer][program]") {
  CHECK_NOTHROW(validate(every_operation()));
  CHECK_NOTHROW(validate(test::mlp()));
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    CHECK_NOTHROW(validate(random_program(seed)));
  }
}

TEST_CASE("a program with invalid values is refused", "[integer][program]") {
  struct Fault {
    std::function<void(Program&)> change;
    std::string text;
  };
  const auto check = [](auto* type, const std::vector<Fault>& faults) {
    using Type = std::decay_t<decltype(*type)>;
    for (const Fault& fault : faults) {
      INFO(fault.text);
      Program p = every_operation();
      fault.change(p);
      QUANTRAIN_CHECK_ERROR(validate(p), Type, fault.text);
    }
  };
  const QParams x = kX;
  check(static_cast<ShapeError*>(nullptr),
        {{[](Program& p) {
            p.values[kFc].shape = {2, 0, 5};
          },
          "[fc] extent 0 is not positive"},
         {[](Program& p) {
            p.values[kConv].shape = {1 << 20, 1 << 20, 1 << 20};
          },
          "[conv] a value has more than 1073741824 elements"},
         {[](Program& p) { p.values[kLogits].scale.pop_back(); },
          "[logits] 2 scales do not fit accumulators of shape [3]"},
         {[](Program& p) { p.values[kLogits].scale.clear(); },
          "[logits] 0 scales do not fit accumulators of shape [3]"},
         {[](Program& p) { step<View>(p, kFlat).size = 0; }, "[flat] extent 0 is not positive"},
         {[](Program& p) { step<QuantizedConv2d>(p, kConv).shape.stride_h = 0; },
          "[conv] extent 0 is not in [1, 1048576]"}});
  check(static_cast<QuantError*>(nullptr),
        {{[](Program& p) { p.values[kLogits].scale[1] = 0.0; },
          "[logits] the scale of accumulators is 0"},
         {[](Program& p) { p.values[kLogits].scale[1] = -1.0; },
          "[logits] the scale of accumulators is -1"},
         {[](Program& p) { p.values[kLogits].scale[0] = kInfinity; },
          "[logits] the scale of accumulators is inf"},
         {[](Program& p) { p.values[kLogits].scale[2] = std::nan(""); },
          "[logits] the scale of accumulators is nan"},
         {[](Program& p) { p.values[kAvg].params->scale[0] = 0.0f; }, "[avg] "},
         {[](Program& p) { p.values[kAvg].params->scale[0] = kNan; }, "[avg] "},
         {[](Program& p) { p.values[kAvg].params->zero_point[0] = 16; }, "[avg] "},
         {[](Program& p) { p.values[kAvg].params->zero_point[0] = -1; }, "[avg] "},
         {[](Program& p) { p.values[kAvg].params->type.bits = 1; }, "[avg] "},
         {[](Program& p) { p.values[kAvg].params->type.bits = 16; },
          "[avg] integer activations are per tensor and of 1 to 8 bits"},
         {[](Program& p) {
            p.values[kAvg].params = QParams{{}, 0, {1.0f, 1.0f}, {0, 0}};
          },
          "[avg] "},
         {[](Program& p) { p.values[kAvg].params->scale.clear(); }, "[avg] "},
         {[](Program& p) { p.values[kAvg].params->zero_point.clear(); }, "[avg] "},
         {[](Program& p) { p.values[kAvg].scale = {1.0}; },
          "[avg] has parameters of codes and scales of accumulators"},
         {[](Program& p) { step<QuantizedAdd>(p, kSum).operands[0].zero_x = 300; },
          "[sum] zero point 300 is not in [0, 255]"}});
}

TEST_CASE("an input of one number has one feature", "[integer][program]") {
  Program program = every_operation();
  program.values[kInput0].shape = {};
  program.values[kInput0].features = {{0.0f, 0.0f}, {1.0f, 1.0f}};
  QUANTRAIN_CHECK_ERROR(
      validate(program),
      QuantError,
      "[input0] 2 offsets and 2 scales of features, expected one for each of the 1");
}

TEST_CASE("a program whose steps do not fit together is refused", "[integer][program]") {
  struct Fault {
    std::function<void(Program&)> change;
    std::string text;
  };
  // The position after the last value.
  const auto none = static_cast<int>(every_operation().values.size());
  const std::string missing = "value " + std::to_string(none);
  const std::vector<Fault> faults = {
      {[](Program& p) { p.inputs.clear(); }, "[program] there is no input"},
      {[](Program& p) { p.outputs.clear(); }, "[program] there is no output"},
      {[](Program& p) { p = {}; }, "[program] there is no input"},
      {[](Program& p) { p.inputs[0] = -1; }, "[program] value -1 does not exist"},
      {[](Program& p) {
         p.values[kMax].params.reset();
         p.values[kMax].scale = {1.0};
       },
       "[max] gives codes, but its value is declared as accumulators"},
      {[=](Program& p) { p.inputs[1] = none; }, "[program] " + missing + " does not exist"},
      {[](Program& p) { p.outputs[1] = -1; }, "[program] value -1 does not exist"},
      {[=](Program& p) { p.outputs[1] = none; }, "[program] " + missing + " does not exist"},
      {[](Program& p) { p.inputs.push_back(kLogits); },
       "[logits] is an input, but holds accumulators"},
      {[](Program& p) { p.inputs.push_back(kInput0); }, "[input0] value 0 is written twice"},
      {[](Program& p) { p.inputs.push_back(kAvg); }, "[avg] value 5 is written twice"},
      {[](Program& p) { p.steps.push_back(p.steps.front()); }, "[sum] value 2 is written twice"},
      {[](Program& p) { step_of(p, kMax).output = -1; }, "[program] value -1 does not exist"},
      {[=](Program& p) { step_of(p, kMax).output = none; },
       "[program] " + missing + " does not exist"},
      {[](Program& p) { step_of(p, kMax).inputs[0] = -1; }, "[max] value -1 does not exist"},
      {[=](Program& p) { step_of(p, kMax).inputs[0] = none; },
       "[max] " + missing + " does not exist"},
      {[](Program& p) { step_of(p, kMax).inputs.clear(); },
       "[max] has 0 inputs, but its operation takes 1"},
      {[](Program& p) { step_of(p, kMax).inputs.push_back(kConv); },
       "[max] has 2 inputs, but its operation takes 1"},
      {[](Program& p) { step_of(p, kSum).inputs.pop_back(); },
       "[sum] has 1 inputs, but its operation takes 2"},
      {[](Program& p) { std::swap(p.steps[0], p.steps[1]); },
       "[conv] reads value 2, which no layer wrote"},
      {[](Program& p) { step_of(p, kMax).inputs[0] = kMax; },
       "[max] reads value 4, which no layer wrote"},
      {[](Program& p) { step_of(p, kFc).inputs[0] = kAvg; },
       "[fc] input 0 has shape [2, 2, 3], expected 24 elements"},
      {[](Program& p) { p.values[kFlat].shape = {25}; },
       "[flat] gives 24 elements, but its value has shape [25]"},
      {[](Program& p) {
         p.values[kConv].shape = {4, 4};
       },
       "[conv] gives 48 elements, but its value has shape "},
      {[](Program& p) { step<QuantizedLinear>(p, kFc).product.output.reset(); },
       "[fc] gives accumulators, but its value is declared as codes"},
      {[](Program& p) {
         const QuantizedLinear fc = step<QuantizedLinear>(p, kFc);
         QuantizedLinear& logits = step<QuantizedLinear>(p, kLogits);
         logits.product.output = fc.product.output;
         edit(logits.product.output->m0, [](auto& m0) { m0.resize(3); });
         edit(logits.product.output->shift, [](auto& shift) { shift.resize(3); });
       },
       "[logits] gives codes, but its value is declared as accumulators"},
      {[](Program& p) { step<QuantizedAdd>(p, kSum).operands[0].zero_x = 8; },
       "[sum] expects zero point 8, but the value has 7"},
      {[](Program& p) { step<QuantizedAdd>(p, kSum).operands[1].zero_x = 7; },
       "[sum] expects zero point 7, but the value has 125"},
      {[](Program& p) { step<QuantizedAdd>(p, kSum).y.zero_point = 6; },
       "[sum] expects zero point 6, but the value has 5"},
      {[](Program& p) { step<QuantizedConv2d>(p, kConv).product.zero_x = 6; },
       "[conv] expects zero point 6, but the value has 5"},
      {[](Program& p) { step<QuantizedConv2d>(p, kConv).product.output->y.zero_point = 100; },
       "[conv] expects zero point 100, but the value has 108"},
      {[](Program& p) { step<QuantizedAvgPool2d>(p, kAvg).zero_x = 6; },
       "[avg] expects zero point 6, but the value has 108"},
      {[](Program& p) { step<QuantizedAvgPool2d>(p, kAvg).y.zero_point = 6; },
       "[avg] expects zero point 6, but the value has 5"},
      {[](Program& p) { step<QuantizedConcat>(p, kBoth).parts[1].zero_x = 6; },
       "[both] expects zero point 6, but the value has 5"},
      {[](Program& p) { step<QuantizedConcat>(p, kBoth).y.zero_point = 6; },
       "[both] expects zero point 6, but the value has 125"},
      {[](Program& p) { step<QuantizedLinear>(p, kFc).product.zero_x = 6; },
       "[fc] expects zero point 6, but the value has 7"},
      {[](Program& p) { step<QuantizedLinear>(p, kFc).product.output->y.zero_point = 6; },
       "[fc] expects zero point 6, but the value has 5"},
      {[](Program& p) { step<QuantizedMul>(p, kScaled).zero_a = 6; },
       "[scaled] expects zero point 6, but the value has 108"},
      {[](Program& p) { step<QuantizedMul>(p, kScaled).zero_b = 6; },
       "[scaled] expects zero point 6, but the value has 5"},
      {[](Program& p) { step<QuantizedMul>(p, kScaled).y.zero_point = 6; },
       "[scaled] expects zero point 6, but the value has 125"},
      {[](Program& p) { std::swap(step_of(p, kScaled).inputs[0], step_of(p, kScaled).inputs[1]); },
       "[scaled] input 0 has shape [2, 2, 3], expected 48 elements"},
      {[](Program& p) { step_of(p, kScaled).inputs[1] = kConv; },
       "[scaled] input 1 has shape [4, 4, 3], expected 12 elements"},
      {[](Program& p) { step_of(p, kScaled).inputs.pop_back(); },
       "[scaled] has 1 inputs, but its operation takes 2"},
      {[](Program& p) { step<QuantizedSoftmax>(p, kSoftmax).y.zero_point = 6; },
       "[softmax] expects zero point 6, but the value has 125"},
      {[](Program& p) { step<QuantizedSoftmax>(p, kSoftmax).classes = 6; },
       "[softmax] input 0 has shape [2, 5], expected 12 elements"},
      {[](Program& p) { step_of(p, kSoftmax).inputs[0] = kConv; },
       "[softmax] input 0 has shape [4, 4, 3], expected 10 elements"},
      {[](Program& p) { step_of(p, kSoftmax).inputs.push_back(kFc); },
       "[softmax] has 2 inputs, but its operation takes 1"},
      {[](Program& p) { p.values[kMax].params->scale[0] = 0.5f; },
       "[max] must keep the parameters of its input"},
      {[](Program& p) { p.values[kFlat].params->type.bits = 7; },
       "[flat] must keep the parameters of its input"},
      {[](Program& p) { p.values.push_back({.name = "ghost", .shape = {1}, .params = kX}); },
       "[ghost] no layer wrote " + missing},
      {[](Program& p) {
         p.values.push_back({.name = "ghost", .shape = {1}, .params = kX});
         p.outputs.push_back(static_cast<int>(p.values.size()) - 1);
       },
       "[program] the output is " + missing + ", which no layer wrote"},
  };
  for (const Fault& fault : faults) {
    INFO(fault.text);
    Program p = every_operation();
    fault.change(p);
    QUANTRAIN_CHECK_ERROR(validate(p), GraphError, fault.text);
  }
}

TEST_CASE("no step can read accumulators", "[integer][program]") {
  Builder b;
  const int input = b.input({4}, kX);
  const RandomProduct p({.outputs = 4, .length = 4, .x = kX}, 1);
  const int sums =
      b.accumulators("sums", QuantizedLinear{1, 4, 4, p.product}, {input}, {4}, p.scale);
  b.program.outputs = {sums};
  CHECK_NOTHROW(validate(b.program));
  b.program.outputs = {b.codes("max", View{4}, {sums}, {4}, kX)};
  QUANTRAIN_CHECK_ERROR(
      validate(b.program), GraphError, "[sums] gives accumulators, which max cannot read");
}

TEST_CASE("accumulators have one scale or one for each channel", "[integer][program]") {
  Program p = every_operation();
  p.values[kLogits].shape = {3, 1};  // as if a reshape had been fused
  CHECK_NOTHROW(validate(p));
  p.values[kLogits].scale.resize(1);
  CHECK_NOTHROW(validate(p));
  p.values[kLogits].scale.resize(6, 0.5);
  QUANTRAIN_CHECK_ERROR(
      validate(p), ShapeError, "[logits] 6 scales do not fit accumulators of shape [3, 1]");
}

TEST_CASE("a concatenation has any number of operands", "[integer][program]") {
  for (const size_t count : {size_t{1}, size_t{64}, size_t{65}, size_t{1000}})
    CHECK_NOTHROW(validate(test::wide_concat(count)));
}

TEST_CASE("every number of every operation changes the hash", "[integer][program]") {
  const Program original = every_operation();
  std::set<uint64_t> hashes{content_hash(original)};
  size_t programs = 1;
  for (size_t s = 0; s < original.steps.size(); ++s) {
    Operation operation = original.steps[s].operation;
    const int64_t numbers = mutate(operation, -1);
    CHECK(operation == original.steps[s].operation);
    INFO(type(operation) << " of " << numbers << " numbers");
    CHECK(numbers > 0);
    for (int64_t target = 0; target < numbers; ++target) {
      Program changed = original;
      mutate(changed.steps[s].operation, target);
      REQUIRE_FALSE(changed == original);
      hashes.insert(content_hash(changed));
      ++programs;
    }
  }
  CHECK(hashes.size() == programs);  // no two are equal
}

TEST_CASE("every change of structure, meaning or wiring changes the hash", "[integer][program]") {
  const auto resized = [](auto& array, int64_t size) {
    using T = std::decay_t<decltype(array[0])>;
    std::vector<T> values(array.begin(), array.end());
    values.resize(static_cast<size_t>(size));
    array = std::move(values);
  };
  const auto resize_weight = [](QuantizedProduct& p, size_t size) {
    std::vector<int8_t> weight = p.weight.values();
    weight.resize(size);
    p.weight = {std::move(weight), p.weight.bits()};
  };
  const std::vector<std::pair<const char*, std::function<void(Program&)>>> changes = {
      {"no bias", [](Program& p) { step<QuantizedLinear>(p, kLogits).product.bias = {}; }},
      {"a bias of 0",
       [](Program& p) { step<QuantizedLinear>(p, kFc).product.bias = std::vector<int32_t>(5); }},
      {"one more bias",
       [&](Program& p) { resized(step<QuantizedLinear>(p, kLogits).product.bias, 4); }},
      {"one weight fewer",
       [&](Program& p) { resize_weight(step<QuantizedLinear>(p, kFc).product, 59); }},
      {"one more weight of 0",
       [&](Program& p) { resize_weight(step<QuantizedLinear>(p, kFc).product, 61); }},
      {"no output", [](Program& p) { step<QuantizedLinear>(p, kFc).product.output.reset(); }},
      {"an output", [](Program& p) { step<QuantizedLinear>(p, kLogits).product.output.emplace(); }},
      {"one multiplier fewer",
       [](Program& p) {
         edit(step<QuantizedLinear>(p, kFc).product.output->m0, [](auto& m0) { m0.pop_back(); });
       }},
      {"one shift fewer",
       [](Program& p) {
         edit(step<QuantizedLinear>(p, kFc).product.output->shift,
              [](auto& shift) { shift.pop_back(); });
       }},
      {"one part fewer", [](Program& p) { step<QuantizedConcat>(p, kBoth).parts.pop_back(); }},
      {"parts swapped",
       [](Program& p) {
         auto& parts = step<QuantizedConcat>(p, kBoth).parts;
         std::swap(parts[0], parts[1]);
       }},
      {"one mean fewer", [](Program& p) { step<QuantizedAvgPool2d>(p, kAvg).means.pop_back(); }},
      {"another type of operation",
       [](Program& p) { step_of(p, kFlat).operation = QuantizedLookup{.size = 24}; }},
      {"a pool of another kind",
       [](Program& p) {
         step_of(p, kAvg).operation = QuantizedMaxPool2d{step<QuantizedAvgPool2d>(p, kAvg).shape};
       }},
      {"inputs swapped",
       [](Program& p) { std::swap(step_of(p, kSum).inputs[0], step_of(p, kSum).inputs[1]); }},
      {"another input", [](Program& p) { step_of(p, kBoth).inputs[0] = kAvg; }},
      {"another output of a step", [](Program& p) { step_of(p, kMax).output = kAvg; }},
      {"one more input", [](Program& p) { step_of(p, kBoth).inputs.push_back(kAvg); }},
      {"steps swapped", [](Program& p) { std::swap(p.steps[2], p.steps[3]); }},
      {"one step fewer", [](Program& p) { p.steps.pop_back(); }},
      {"the program's inputs swapped", [](Program& p) { std::swap(p.inputs[0], p.inputs[1]); }},
      {"one program input fewer", [](Program& p) { p.inputs.pop_back(); }},
      {"the program's outputs swapped", [](Program& p) { std::swap(p.outputs[0], p.outputs[1]); }},
      {"one program output fewer", [](Program& p) { p.outputs.pop_back(); }},
      {"the last input as the first output",
       [](Program& p) {
         p.outputs.insert(p.outputs.begin(), p.inputs.back());
         p.inputs.pop_back();
       }},
      {"another extent",
       [](Program& p) {
         p.values[kFc].shape = {5, 2};
       }},
      {"another rank", [](Program& p) { p.values[kFc].shape = {10}; }},
      {"an axis of 1",
       [](Program& p) {
         p.values[kFc].shape = {1, 2, 5};
       }},
      {"another scale", [](Program& p) { p.values[kFc].params->scale[0] *= 1.0000001f; }},
      {"another zero point", [](Program& p) { ++p.values[kFc].params->zero_point[0]; }},
      {"other bits", [](Program& p) { ++p.values[kFc].params->type.bits; }},
      {"a signed type", [](Program& p) { p.values[kFc].params->type.is_signed = true; }},
      {"a narrow type", [](Program& p) { p.values[kFc].params->type.narrow = true; }},
      {"another scale of accumulators",
       [](Program& p) {
         p.values[kLogits].scale[2] = std::nextafter(p.values[kLogits].scale[2], 1.0);
       }},
      {"only one scale of accumulators", [](Program& p) { p.values[kLogits].scale.resize(1); }},
      {"accumulators instead of codes",
       [](Program& p) {
         p.values[kFc].scale = {double{p.values[kFc].params->scale[0]}};
         p.values[kFc].params.reset();
       }},
      {"one more value",
       [](Program& p) { p.values.push_back({.name = "", .shape = {1}, .params = kX}); }},
  };
  const Program original = every_operation();
  std::set<uint64_t> hashes{content_hash(original)};
  for (const auto& [what, change] : changes) {
    INFO(what);
    Program changed = original;
    change(changed);
    CHECK_FALSE(changed == original);
    CHECK(hashes.insert(content_hash(changed)).second);
  }
}

TEST_CASE("a hash does not depend on names", "[integer][program]") {
  const Program original = every_operation();
  Program renamed = original;
  for (Value& value : renamed.values) value.name += "!";
  CHECK(content_hash(renamed) == content_hash(original));
  CHECK(content_hash(every_operation()) == content_hash(original));
}

TEST_CASE("a hash is the same on every machine and in every version", "[integer][program]") {
  // If this hash changes, stored hashes no longer match. Change it only for a good reason.
  Builder b;
  const int input = b.input({2, 3}, {{.bits = 8}, -1, {0.5f}, {3}});
  const int clamped = b.codes(
      "relu",
      QuantizedLookup::rescale(
          6, *b.program.value(input).params, *b.program.value(input).params, Activation::kRelu),
      {input},
      {6},
      {{.bits = 8}, -1, {0.5f}, {3}});
  b.program.outputs = {clamped};
  CHECK(content_hash(b.program) == 0xa54b09246db14e82);
}

TEST_CASE("the bytes and multiply-adds of a program are sums over its parts",
          "[integer][program]") {
  const Program p = every_operation();
  int64_t bytes = 8 * static_cast<int64_t>(p.values.size());
  int64_t products = 0;
  for (const Step& s : p.steps) {
    bytes += size_bytes(s.operation);
    products += multiply_adds(s.operation);
  }
  CHECK(size_bytes(p) == bytes);
  CHECK(multiply_adds(p) == products);
  CHECK(products == 4 * 4 * 3 * 18 + 2 * 12 * 5 + 10 * 3);

  Program own = p;
  // Weights of 4 bits, bias, m0, shift.
  CHECK(size_bytes(Operation(step<QuantizedConv2d>(own, kConv))) == 54 / 2 + 3 * 4 + 3 * 4 + 3);
  // Weights of 2 bits, no bias.
  CHECK(size_bytes(Operation(step<QuantizedLinear>(own, kFc))) == 60 / 4 + 5 * 4 + 5);
  // Weights of 8 bits, bias, no m0 and shift, because the layer gives accumulators.
  CHECK(size_bytes(Operation(step<QuantizedLinear>(own, kLogits))) == 30 + 3 * 4);
  CHECK(size_bytes(Operation(step<QuantizedLookup>(own, kSquashed))) == 256);
  CHECK(size_bytes(Operation(step<QuantizedConcat>(own, kBoth))) == 2 * 5);
  CHECK(size_bytes(Operation(step<QuantizedAvgPool2d>(own, kAvg))) ==
        5 * static_cast<int64_t>(step<QuantizedAvgPool2d>(own, kAvg).means.size()));
  CHECK(size_bytes(Operation(View{5})) == 0);
}

}  // namespace quantrain::integer
