#pragma once

#include <cstdint>
#include <string_view>

#include "framework/autograd/tensor.hpp"

// What Conv1d and Conv2d share: members and checks of arguments.
namespace quantrain {

template <class Options>
struct ConvolutionMembers {
  Options options;
  Tensor weight, bias;
  static void describe(auto& m, auto& member) {
    member("stride", m.options.stride);
    member("padding", m.options.padding);
    member("groups", m.options.groups);
    member("dilation", m.options.dilation);
    member("weight", m.weight);
    member("bias", m.bias);
  }
};

/// Checks the channel counts and groups of a layer.
/// Throws: ShapeError naming `where` if a channel count or groups is not positive, or groups does
/// not divide both counts.
void check_channel_counts(std::string_view where,
                          int64_t in_channels,
                          int64_t out_channels,
                          int64_t groups);

/// Checks the tensors that a layer is made from: weight [O, ..., C / groups]; bias [O] or
/// undefined. `axes` describes the expected shape of the weight in the message.
/// Throws: ShapeError naming `where` if the weight is undefined or does not have `rank` axes, if
/// the bias does not fit the weight, or if groups is below 1 or above O.
void check_weights(std::string_view where,
                   const Tensor& weight,
                   const Tensor& bias,
                   int rank,
                   std::string_view axes,
                   int64_t groups);

}  // namespace quantrain
