#pragma once

#include <cstdint>
#include <string>

#include "quant/export/c99/products.hpp"

namespace quantrain::c99 {

/// The tables of a product, and an array of structs that point into them. The array has one struct
/// for each convolution group, but only one for a whole depthwise layer. Tables that equal those of
/// an earlier step are not repeated: needs.tables holds their names. Adds the bytes of new tables
/// to *bytes.
std::string product_tables(const ProductStep& step,
                           const std::string& id,
                           const Settings& settings,
                           Needs& needs,
                           int64_t* bytes);

}  // namespace quantrain::c99
