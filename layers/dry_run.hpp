#pragma once

namespace quantrain {

/// While it lives, layers in evaluation mode keep no state from what they compute in this thread: a
/// layer that would calibrate itself on its first values does so for this pass only.
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
