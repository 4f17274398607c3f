#pragma once

#include "framework/kernels/gemm.hpp"
#include "framework/kernels/params.hpp"

// What products of matrices and convolutions share.
namespace quantrain::kernels {

/// The part of the epilogue that falls to one call of the tile kernel: columns from `column` on;
/// `first` and `last` say which parts of the sum the call covers.
void set_epilogue(TilesF32& p, const EpilogueF32& epilogue, int64_t column, bool first, bool last);

}  // namespace quantrain::kernels
