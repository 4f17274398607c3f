#include "layers/convolution.hpp"

#include "framework/core/error.hpp"

namespace quantrain {

void check_channel_counts(std::string_view where,
                          int64_t in_channels,
                          int64_t out_channels,
                          int64_t groups) {
  if (in_channels <= 0 || out_channels <= 0) {
    throw ShapeError(where, "channels must be positive: in ", in_channels, ", out ", out_channels);
  }
  if (groups <= 0 || in_channels % groups != 0 || out_channels % groups != 0) {
    throw ShapeError(where,
                     "groups ",
                     groups,
                     " do not divide the channels: in ",
                     in_channels,
                     ", out ",
                     out_channels);
  }
}

void check_weights(std::string_view where,
                   const Tensor& weight,
                   const Tensor& bias,
                   int rank,
                   std::string_view axes,
                   int64_t groups) {
  if (!weight.defined()) throw ShapeError(where, "the weight is undefined");
  if (weight.rank() != rank)
    throw ShapeError(where, "a weight is ", axes, ", got ", weight.shape());
  if (bias.defined() && !(bias.shape() == Shape{weight.dim(0)}))
    throw ShapeError(where, "bias ", bias.shape(), " does not fit weight ", weight.shape());
  // Without this bound, the caller's product of groups and channels could overflow.
  if (groups < 1 || groups > weight.dim(0))
    throw ShapeError(where, "groups ", groups, " does not fit weight ", weight.shape());
}

}  // namespace quantrain
