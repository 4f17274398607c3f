#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/autograd/tensor.hpp"
#include "framework/core/buffer.hpp"

namespace quantrain {

/// Operands of an exact integer product u8 x s8 -> s32, checked, as kernels take them.
/// docs/quantization.md (6), (7)
struct IntegerProduct {
  std::shared_ptr<const Codes> x;
  std::shared_ptr<const Codes> weight;
  std::vector<double> scale;   ///< scale_x * scale_w[o], one for each output channel
  std::vector<int32_t> terms;  ///< the quantized bias; empty without one

  const int32_t* bias() const { return terms.empty() ? nullptr : terms.data(); }
};

/// The product, where x holds activation codes and weight [O, ...] signed codes with zero points of
/// 0, per tensor or per output channel; else nothing: the operation computes with floats.
/// `reduction` is the number of products behind one sum.
/// Throws: QuantError naming the operation if a sum or a quantized bias could leave 32 bits.
std::optional<IntegerProduct> integer_product(std::string_view operation,
                                              const Tensor& x,
                                              const Tensor& weight,
                                              const Tensor& bias,
                                              int64_t reduction);

}  // namespace quantrain
