#pragma once

#include <cstdint>
#include <string>

#include "quant/export/c99/products.hpp"

namespace quantrain::c99 {

/// The tables of a product, and a struct that points to them: one for each convolution group, or
/// one for a depthwise layer. Adds the tables' bytes to *bytes.
std::string product_tables(const ProductStep& step,
                           const std::string& id,
                           const Settings& settings,
                           int64_t* bytes);

}  // namespace quantrain::c99
