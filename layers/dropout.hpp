#pragma once

#include "layers/init.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// While training, each element becomes 0 with probability p and the others are divided by 1 - p;
/// in evaluation y = x. The choice of elements depends on the generator's seed, the stream that the
/// layer took from it (init.hpp), and the number of passes that the layer has run. So the same
/// program gives the same bits, even if it was interrupted and resumed.
/// Buffer: "passes" [2].
/// Source: Srivastava et al. 2014.
class Dropout : public Module {
 public:
  /// Throws: DataError unless 0 <= p < 1. In training: DataError if the value loaded into "passes"
  /// is not a valid number of passes.
  explicit Dropout(float p = 0.5f, Generator& generator = default_generator());
  std::string_view type() const override { return "Dropout"; }

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  uint64_t next_pass();

  float p_;
  uint64_t seed_;
  Tensor passes_;  // passes run: [0] + 2^24 * [1], because a saved float32 counts only to 2^24
};

}  // namespace quantrain
