#pragma once

namespace quantrain {

/// While it lives, passes in evaluation mode in this thread change no state of the layers. A layer
/// that still has no quantization parameters computes them from its input, and forgets them after
/// the pass.
class DryRun {
 public:
  DryRun();
  ~DryRun();
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  static bool on();

 private:
  bool previous_;
};

}  // namespace quantrain
