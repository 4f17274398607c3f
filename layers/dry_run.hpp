#pragma once

namespace quantrain {

/// While a DryRun exists, passes in evaluation mode in this thread leave the state of all layers
/// unchanged. If a layer does not have its quantization parameters yet, it computes them from its
/// input and discards them after the pass.
class DryRun {
 public:
  [[nodiscard]] DryRun();
  ~DryRun();
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  /// Whether a DryRun exists in this thread.
  static bool on();
};

}  // namespace quantrain
