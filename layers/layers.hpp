#pragma once

#include <tuple>

// Includes every layer, for programs, and lists their types.
#include "layers/activation.hpp"
#include "layers/adaptive_pooling.hpp"
#include "layers/add.hpp"
#include "layers/batch_norm.hpp"
#include "layers/concat.hpp"
#include "layers/conv1d.hpp"
#include "layers/conv2d.hpp"
#include "layers/copy.hpp"
#include "layers/dropout.hpp"
#include "layers/dry_run.hpp"
#include "layers/evaluate.hpp"
#include "layers/evaluation_mode.hpp"
#include "layers/flatten.hpp"
#include "layers/fusion.hpp"
#include "layers/init.hpp"
#include "layers/linear.hpp"
#include "layers/members.hpp"
#include "layers/module.hpp"
#include "layers/moves.hpp"
#include "layers/mul.hpp"
#include "layers/normalization.hpp"
#include "layers/pooling.hpp"
#include "layers/pytorch_weights.hpp"
#include "layers/record_graph.hpp"
#include "layers/reduction.hpp"
#include "layers/reshape.hpp"
#include "layers/sequential.hpp"
#include "layers/state.hpp"
#include "layers/summary.hpp"

namespace quantrain {

/// Every layer that files know by its name (kType). A new layer gets a line here; the compiler
/// names what it lacks (layers/members.hpp).
using LayerTypes = std::tuple<Abs,
                              AdaptiveAvgPool1d,
                              AdaptiveAvgPool2d,
                              AdaptiveMaxPool1d,
                              AdaptiveMaxPool2d,
                              Add,
                              AvgPool1d,
                              AvgPool2d,
                              BatchNorm1d,
                              BatchNorm2d,
                              Clamp,
                              Concat,
                              Conv1d,
                              Conv2d,
                              Dropout,
                              ELU,
                              Erf,
                              Exp,
                              Flatten,
                              GELU,
                              GELUTanh,
                              GlobalAvgPool1d,
                              GlobalAvgPool2d,
                              GlobalMaxPool1d,
                              GlobalMaxPool2d,
                              HardSigmoid,
                              HardSwish,
                              LeakyReLU,
                              Linear,
                              Logarithm,
                              Max,
                              MaxPool1d,
                              MaxPool2d,
                              Mean,
                              Mish,
                              Mul,
                              OnesChannel,
                              PReLU,
                              Power,
                              ReLU,
                              ReLU6,
                              Reshape,
                              SELU,
                              SiLU,
                              Sigmoid,
                              Slice,
                              Softmax,
                              Softplus,
                              Sqrt,
                              Square,
                              Tanh,
                              Upsample,
                              ZeroPad1d,
                              ZeroPad2d>;

}  // namespace quantrain
