#pragma once

#include <cstdint>
#include <vector>

#include "framework/core/shape.hpp"
#include "tools/data.hpp"

namespace quantrain::tools {

/// The samples of D as they are in the file, with their labels or targets.
/// Throws: as read_data(), which also makes them fit the model.
Data read_files(const DataFlags& flags, const Model& model);

Shape shape_of(const std::vector<int64_t>& extents);

}  // namespace quantrain::tools
