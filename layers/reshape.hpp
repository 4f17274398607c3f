#pragma once

#include <vector>

#include "layers/module.hpp"

namespace quantrain {

/// Gives each sample another shape: Reshape{{28, 28, 1}}. The elements keep their row-major order.
/// One extent may be -1; it is computed from the number of elements.
/// Shapes: x [N, ...]  ->  y [N, sample...].
class Reshape : public Module {
 public:
  /// Throws: ShapeError if an extent is neither positive nor -1, if more than one extent is -1, or
  /// if a Shape cannot hold the extents and the batch axis.
  explicit Reshape(std::vector<int64_t> sample);

  static constexpr std::string_view kType = "Reshape";
  struct Members {
    std::vector<int64_t> sample;
    static void describe(auto& m, auto& member) { member("sample", m.sample); }
  };
  static Reshape from(const Members& m) { return Reshape(m.sample); }
  Members members() const { return {sample_}; }
  std::string_view type() const override { return kType; }
  const std::vector<int64_t>& sample() const& { return sample_; }
  std::vector<int64_t> sample() const&& { return sample_; }

 protected:
  /// Throws: ShapeError if x has no batch axis, or if the sample's elements do not fill the shape.
  Tensor forward(const Tensor& x) override;

 private:
  std::vector<int64_t> sample_;
};

}  // namespace quantrain
