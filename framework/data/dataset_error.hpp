#pragma once

namespace quantrain {

/// The first word of the errors of all datasets.
inline constexpr const char* kDataset = "dataset";

}  // namespace quantrain
