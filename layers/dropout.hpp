#pragma once

#include "layers/module.hpp"

namespace quantrain {

/// While training, each element becomes 0 with probability p and the others are divided by 1 - p;
/// in evaluation y = x. Which ones depends on the seed of manual_seed(), the position of the layer
/// among those made since, and the number of passes that it has run: the same program gives the
/// same bits.
/// Source: Srivastava et al. 2014.
class Dropout : public Module {
 public:
  /// Throws: DataError unless 0 <= p < 1.
  explicit Dropout(float p = 0.5f);
  std::string_view type() const override { return "Dropout"; }

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  float p_;
  uint64_t seed_;
  uint64_t passes_ = 0;
};

}  // namespace quantrain
