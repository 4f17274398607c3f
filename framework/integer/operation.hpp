#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

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
void for_each_type(const Visit& visit, std::variant<Operations...>*) {
  (visit(static_cast<Operations*>(nullptr)), ...);
}
template <class Visit>
void for_each_type(const Visit& visit) {
  for_each_type(visit, static_cast<Operation*>(nullptr));
}

/// Name of the type in a saved program, for example "quantized_conv2d".
std::string_view type(const Operation& op);
/// Name of the kernel that runs, for example "conv2d_u8s8_u8".
std::string_view kernel(const Operation& op);
/// Number of elements of one sample, for each input and for the output.
std::vector<int64_t> input_sizes(const Operation& op);
int64_t output_size(const Operation& op);
/// Throws: ShapeError or QuantError naming `where` unless the result is defined for every input.
void validate(const Operation& op, std::string_view where);

/// The weights and multipliers of a product, or null for other operations.
const QuantizedProduct* product(const Operation& op);
const QuantizedProduct* product(const Operation&& op) = delete;
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

/// An operation that is ready to run on the chosen instruction set. The operation must outlive this
/// object.
class PreparedOperation {
 public:
  explicit PreparedOperation(const Operation& op);
  PreparedOperation(const Operation&& op) = delete;
  /// Runs n samples. The output holds n * output_size() codes or accumulators. Allocates only from
  /// the pool.
  void run(int64_t n, Inputs inputs, void* output) const;

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
