#pragma once

// Every operation.
#include "framework/autograd/ops/add.hpp"
