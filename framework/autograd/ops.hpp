#pragma once

// Every operation.
#include "framework/autograd/ops/add.hpp"
#include "framework/autograd/ops/avg_pool2d.hpp"
#include "framework/autograd/ops/concat.hpp"
#include "framework/autograd/ops/conv2d.hpp"
#include "framework/autograd/ops/flatten.hpp"
#include "framework/autograd/ops/linear.hpp"
#include "framework/autograd/ops/matmul.hpp"
#include "framework/autograd/ops/max_pool2d.hpp"
#include "framework/autograd/ops/relu.hpp"
#include "framework/autograd/ops/reshape.hpp"
