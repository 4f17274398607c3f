#pragma once

#include <string>
#include <string_view>

#include "quant/integer/quantized_product.hpp"

// Parameters of activations as plain attributes, the form in which a model is saved.
namespace quantrain::quant {

/// Throws: QuantError naming `where` unless these are valid parameters of per-tensor activations of
/// 2 to 8 bits.
void check_activation(const QParams& params, std::string_view where);

/// prefix_bits, prefix_signed, prefix_narrow, prefix_scale, prefix_zero_point.
void append(Attributes& attributes, const std::string& prefix, const QParams& params);
/// Throws: GraphError for what is missing; QuantError as check_activation.
QParams params_from(const Attributes& attributes,
                    const std::string& prefix,
                    std::string_view where);

/// Extents of a convolution or pool of one sample. shape_from throws: as check_shape, and
/// GraphError for what is missing.
void append(Attributes& attributes, const kernels::Conv2dShape& shape);
kernels::Conv2dShape shape_from(const Attributes& attributes, std::string_view where);
/// Throws: ShapeError naming `where` if an extent is not positive, the groups do not divide the
/// channels, or the window does not fit the padded image.
void check_shape(const kernels::Conv2dShape& shape, std::string_view where);

/// Weights of a saved layer; the reverse of QuantizedProduct::tensors().
/// Throws: DataError naming what is missing, of the wrong type, or a code outside of its bits.
QuantizedWeights load_weights(const std::string& where,
                              const Attributes& attributes,
                              std::vector<LayerTensor> tensors);

/// "none", "relu", "relu6".
std::string_view to_string(Activation activation);
/// Throws: DataError naming `where` for any other name.
Activation activation_from(std::string_view name, std::string_view where);

}  // namespace quantrain::quant
