#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "quant/prepare/methods/binary.hpp"
#include "quant/prepare/methods/dorefa.hpp"
#include "quant/prepare/methods/ternary.hpp"

namespace quantrain::quant {

/// A weight function, by the options of its kind: what a layer computes from its weight before a
/// batch norm is folded in and the result is quantized. Each kind is a struct with a name kKind,
/// options that describe() lists, and
///   std::string fault(type, per_channel): why options or codes do not fit, or empty,
///   Tensor operator()(const Tensor& w, bool per_channel), with its gradient.
/// The variant lists all kinds; names, JSON and validation follow from this list. States of
/// networks store the position of a kind, so a new one comes last. docs/quantization.md (28)
using WeightFunction = std::variant<Ternary, DoReFa, Binary>;

/// The name of a kind, such as "ternary".
std::string_view kind(const WeightFunction& function);
/// Each kind with its default options, in the order of the list.
std::vector<WeightFunction> weight_functions();
/// Default options of a kind. Throws: QuantError listing the known kinds.
WeightFunction weight_function(std::string_view kind);

/// The weights after the function.
/// Shapes: w [O, ...] with at least one element  ->  the same shape.
Tensor apply(const WeightFunction& function, const Tensor& w, bool per_channel);
/// Why options or codes do not fit; empty if they do.
std::string fault(const WeightFunction& function, const QType& type, bool per_channel);

}  // namespace quantrain::quant
