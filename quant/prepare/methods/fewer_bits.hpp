#pragma once

#include <string>
#include <string_view>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/named_state.hpp"

namespace quantrain::quant {

/// The bits of a slot that begins with more than it ends with. Part of the slot's state.
class FewerBits {
 public:
  FewerBits(int first, int last);
  int bits() const { return static_cast<int>(now_.item()); }
  /// first - by, but at least `last`, and at most what it is.
  /// Throws: QuantError naming `where` if these are fewer bits and the slot is frozen.
  int lowered(int64_t by, bool frozen, std::string_view where) const;
  void set(int bits) { now_.fill(bits); }
  const IntegerBuffer& state() const { return now_; }

  /// Why a configuration with these bits has no such beginning; empty if it has, or first is 0.
  static std::string fault(int first, int last);

 private:
  int first_;
  int last_;
  IntegerBuffer now_;  // [1]
};

/// By how much a learned scale grows when its codes become fewer: as its start does.
/// docs/quantization.md (4), (27), (30)
double learned_scale_factor(const QType& from, const QType& to);

}  // namespace quantrain::quant
