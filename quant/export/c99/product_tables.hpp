#pragma once

#include <cstdint>
#include <string>

#include "quant/export/c99/products.hpp"

namespace quantrain::c99 {

/// The tables of a product and the structs, one for each group, that point to them; adds the bytes
/// of the tables.
std::string product_tables(const ProductStep& step,
                           const std::string& id,
                           const Settings& settings,
                           int64_t* bytes);

}  // namespace quantrain::c99
