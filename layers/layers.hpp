#pragma once

// Every layer, for programs.
#include "layers/activation.hpp"
#include "layers/add.hpp"
#include "layers/batch_norm.hpp"
#include "layers/concat.hpp"
#include "layers/conv2d.hpp"
#include "layers/dropout.hpp"
#include "layers/dry_run.hpp"
#include "layers/evaluation_mode.hpp"
#include "layers/flatten.hpp"
#include "layers/init.hpp"
#include "layers/linear.hpp"
#include "layers/module.hpp"
#include "layers/pooling.hpp"
#include "layers/sequential.hpp"
#include "layers/state.hpp"
#include "layers/summary.hpp"
