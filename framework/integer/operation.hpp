#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "framework/integer/channels.hpp"
#include "framework/integer/gather.hpp"
#include "framework/integer/quantized_add.hpp"
#include "framework/integer/quantized_avg_pool2d.hpp"
#include "framework/integer/quantized_concat.hpp"
#include "framework/integer/quantized_conv2d.hpp"
#include "framework/integer/quantized_linear.hpp"
#include "framework/integer/quantized_lookup.hpp"
#include "framework/integer/quantized_max_pool2d.hpp"
#include "framework/integer/quantized_mul.hpp"
#include "framework/integer/quantized_softmax.hpp"
#include "framework/integer/view.hpp"

namespace quantrain::integer {

/// What each type in the list must state. The functions below document the members of the same
/// names. If kChannels is kSame, remove_channels(dead) removes each channel c with dead[c] from the
/// inputs and the output. A product, which multiplies by weights, also has a member `product`,
/// weights(), multiply_adds() and channels().
template <class Op>
concept IntegerOperation = requires(const Op& op,
                                    Op& changed,
                                    size_t i,
                                    int64_t n,
                                    const QParams& x,
                                    InputChannels inputs,
                                    const std::vector<bool>& dead,
                                    std::string_view where) {
  { Op::kType } -> std::convertible_to<std::string_view>;
  { Op::kKeepsParams } -> std::convertible_to<bool>;
  { Op::kRunsInPlace } -> std::convertible_to<bool>;
  { Op::kChannels } -> std::convertible_to<ChannelUse>;
  { op.kernel() } -> std::same_as<std::string_view>;
  { op.input_sizes() } -> std::same_as<std::vector<int64_t>>;
  { op.output_size() } -> std::same_as<int64_t>;
  { op.validate(where) } -> std::same_as<void>;
  { op.input_zero_point(i) } -> std::same_as<int32_t>;
  { op.output_zero_point() } -> std::same_as<int32_t>;
  { op.output_codes(x) } -> std::same_as<std::optional<CodeClamp>>;
  { op.prepared_bytes() } -> std::same_as<int64_t>;
  { op.scratch_bytes(n) } -> std::same_as<int64_t>;
  { op.output_channels(inputs) } -> std::same_as<Channels>;
  requires Op::kChannels != ChannelUse::kSame || requires { changed.remove_channels(dead); };
  Prepared<Op>(op);
};

/// Every operation that a program can hold. Code that handles all operations visits this list, so
/// that the compiler reports where a new operation is missing.
using Operation = std::variant<Gather,
                               QuantizedAdd,
                               QuantizedAvgPool2d,
                               QuantizedConcat,
                               QuantizedConv2d,
                               QuantizedLinear,
                               QuantizedLookup,
                               QuantizedMaxPool2d,
                               QuantizedMul,
                               QuantizedSoftmax,
                               View>;

/// Calls visit for each type of operation, with a null pointer of that type, in the order of the
/// list.
template <class Visit, class... Operations>
constexpr void for_each_type(const Visit& visit, std::variant<Operations...>*) {
  (visit(static_cast<Operations*>(nullptr)), ...);
}
template <class Visit>
constexpr void for_each_type(const Visit& visit) {
  for_each_type(visit, static_cast<Operation*>(nullptr));
}

// The compiler names the type and the member that it lacks.
static_assert((for_each_type([](auto* op) {
                 static_assert(IntegerOperation<std::remove_pointer_t<decltype(op)>>);
               }),
               true));

/// Name of the type in a saved program, for example "quantized_conv2d".
std::string_view type(const Operation& op);
/// Name of the kernel that runs, for example "conv2d_u8s8_u8".
std::string_view kernel(const Operation& op);
/// Number of elements of one sample, for each input and for the output.
std::vector<int64_t> input_sizes(const Operation& op);
int64_t output_size(const Operation& op);
/// Throws: ShapeError or QuantError naming `where` unless the result is defined for every input.
void validate(const Operation& op, std::string_view where);
/// The same for one of many operations, which may share weights.
void validate(const Operation& op, std::string_view where, OverflowCheck& overflow);

/// The weights and multipliers of a product, or null for other operations.
const QuantizedProduct* product(const Operation& op);
const QuantizedProduct* product(const Operation&& op) = delete;
QuantizedProduct* product(Operation& op);
/// The shape of a product's weights, as a convolution's, for kernels::PackedWeightsS8.
kernels::Conv2dShape weights_shape(const Operation& op);
/// What the panels of a product's weights depend on. Products with equal keys can share panels.
struct PanelKey {
  Constant::Id id{};
  int64_t c = 0, o = 0, kh = 0, kw = 0, groups = 0;
  bool binary = false;
  kernels::FewBits few = kernels::FewBits::kNone;

  friend auto operator<=>(const PanelKey&, const PanelKey&) = default;
};
/// The operation must be a product.
PanelKey panel_key(const Operation& op);
/// Whether the output is int32 accumulators instead of codes.
bool gives_accumulators(const Operation& op);
/// Zero points of the stored bytes: the one that the operation assumes for input i, and the one of
/// its output. -1 if the operation does not fix the zero point.
int32_t input_zero_point(const Operation& op, size_t i);
int32_t output_zero_point(const Operation& op);
/// Range of the stored codes of the output if the first input has parameters x. std::nullopt if the
/// output's codes are always codes of the input, or if the output is accumulators.
std::optional<CodeClamp> output_codes(const Operation& op, const QParams& x);
/// Whether the output's codes have the same parameters as the input's.
bool keeps_params(const Operation& op);
/// Whether the operation may overwrite an input of the same size with its output.
bool runs_in_place(const Operation& op);
int64_t multiply_adds(const Operation& op);
/// Largest accumulator_bound() of all channels of a product; 0 for other operations.
/// docs/quantization.md (7)
int64_t accumulator_bound(const Operation& op);

/// Bytes that an operation needs besides its inputs and output: for its prepared form, and as
/// scratch memory of a run of n samples.
int64_t prepared_bytes(const Operation& op);
int64_t scratch_bytes(const Operation& op, int64_t n);

/// Channels of the weights of a product; 0 for other operations.
int64_t weight_channels(const Operation& op);
/// The possible codes of each channel of the output, from those of the inputs. If the output is
/// accumulators, any interval.   docs/quantization.md (19)
Channels output_channels(const Operation& op, InputChannels inputs);

/// An operation that is ready to run on the chosen instruction set. The operation must outlive this
/// object.
class PreparedOperation {
 public:
  explicit PreparedOperation(const Operation& op);
  PreparedOperation(const Operation&& op) = delete;
  /// Runs n samples. The output holds n * output_size() codes or accumulators. Allocates only from
  /// the pool.
  void run(int64_t n, Inputs inputs, void* output) const;
  /// The parameters of a product, or null for other operations.
  const kernels::ProductParams* params() const;

 private:
  template <class>
  struct All;
  template <class... Operations>
  struct All<std::variant<Operations...>> {
    using Type = std::variant<Prepared<Operations>...>;
  };
  All<Operation>::Type prepared_;
};

}  // namespace quantrain::integer
