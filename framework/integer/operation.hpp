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

/// Every operation that a program can hold. What has to know them all visits this list, so that the
/// compiler says where a new one is missing.
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

/// Calls visit with a null pointer to each type of operation, in the order of the list.
template <class Visit, class... Operations>
void for_each_type(const Visit& visit, std::variant<Operations...>*) {
  (visit(static_cast<Operations*>(nullptr)), ...);
}
template <class Visit>
void for_each_type(const Visit& visit) {
  for_each_type(visit, static_cast<Operation*>(nullptr));
}

/// "quantized_conv2d": key in a saved program.
std::string_view type(const Operation& op);
/// Name of the kernel that runs: "conv2d_u8s8_u8".
std::string_view kernel(const Operation& op);
/// Elements of one sample of each input, and of the output.
std::vector<int64_t> input_sizes(const Operation& op);
int64_t output_size(const Operation& op);
/// Throws: ShapeError or QuantError naming `where` unless every input gives a defined result.
void validate(const Operation& op, std::string_view where);

/// What it multiplies, or null: for plans and sizes.
const QuantizedProduct* product(const Operation& op);
/// Whether the output is int32 accumulators, not codes.
bool gives_accumulators(const Operation& op);
/// Zero point, in stored bytes, that the operation takes input i to have, or gives its output; -1
/// where any will do.
int32_t input_zero_point(const Operation& op, size_t i);
int32_t output_zero_point(const Operation& op);
/// Stored codes that the output may have where the first input has codes of x; nothing where they
/// are the input's, or accumulators.
std::optional<CodeClamp> output_codes(const Operation& op, const QParams& x);
/// Whether the output's codes mean what the input's do, with the same parameters.
bool keeps_params(const Operation& op);
/// Whether it may write its output over an input of the same size.
bool runs_in_place(const Operation& op);
int64_t multiply_adds(const Operation& op);
/// Of a product, the largest of its channels; else 0.   docs/quantization.md (7)
int64_t accumulator_bound(const Operation& op);

/// Bytes of the pool that an operation takes beside its inputs and output: once it is prepared, and
/// while it runs on n samples.
int64_t prepared_bytes(const Operation& op);
int64_t scratch_bytes(const Operation& op, int64_t n);

/// An operation, ready to run on the chosen instruction set; it must outlive this.
class PreparedOperation {
 public:
  explicit PreparedOperation(const Operation& op);
  /// n samples; the output holds n * output_size() codes or accumulators. Takes no memory but from
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
