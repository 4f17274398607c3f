#pragma once

#include <string>

#include "quant/export/c99/steps.hpp"

// Max pools and average pools.
namespace quantrain::c99 {

StepSource step_source(const integer::QuantizedMaxPool2d& op, const std::string& id, Order order);
StepSource step_source(const integer::QuantizedAvgPool2d& op,
                       const std::string& id,
                       Order order,
                       Needs& needs);

}  // namespace quantrain::c99
