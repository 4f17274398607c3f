#pragma once

#include "layers/init.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// In training, each element becomes 0 with probability p, and the others are divided by 1 - p. In
/// evaluation, y = x. Which elements become 0 depends on the generator's seed, the stream that the
/// layer took from the generator (init.hpp), the number of training passes so far, and, if a batch
/// is computed in shards, the shard's number. So the same program gives the same bits, even if it
/// was interrupted and resumed.
/// Shapes: x [...]  ->  y like x.
/// Buffers: "passes", the number of training passes so far.
/// Source: Srivastava et al. 2014.
class Dropout : public Module {
 public:
  /// Throws: DataError unless 0 <= p < 1.
  explicit Dropout(float p = 0.5f, Generator& generator = default_generator());
  static constexpr std::string_view kType = "Dropout";
  struct Members {
    float p = 0.5f;
    int64_t seed = 0;  ///< the bits of the stream's seed
    IntegerBuffer passes;
    static void describe(auto& m, auto& member) {
      member("p", m.p);
      member("seed", m.seed);
      member("passes", m.passes);
    }
  };
  /// Continues the random numbers of another Dropout. Without passes, begins at the first.
  /// Throws: DataError unless 0 <= p < 1, or if passes are not one count.
  static Dropout from(const Members& m) { return Dropout(m); }
  Members members() const { return {p_, static_cast<int64_t>(seed_), passes_}; }
  std::string_view type() const override { return kType; }

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  explicit Dropout(const Members& members);
  void check() const;
  uint64_t next_pass();

  float p_;
  uint64_t seed_;
  IntegerBuffer passes_;  // number of passes in training mode
};

}  // namespace quantrain
