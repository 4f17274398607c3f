#pragma once

#include "framework/kernels/conv_shape.hpp"
#include "quant/import/tflite/lowering.hpp"

namespace quantrain::tflite {

/// Product of the extents.
int64_t elements_of(const Dims& dims);
/// Sets strides and padding from the options of a convolution or pool, whose first three fields are
/// the same. s has the image, the kernel and the dilation.
/// SAME: ceil(H / stride) outputs; of an odd number of rows of padding, the odd one comes after the
/// image.
void set_window(const Lowering& l, kernels::Conv2dShape& s);
/// Throws: Refusal unless the window is valid and the output is [1, OH, OW, O].
void check_window_output(const Lowering& l, const kernels::Conv2dShape& s);

}  // namespace quantrain::tflite
