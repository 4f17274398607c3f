#pragma once

namespace quantrain {

/// While it lives, layers keep nothing of what they compute in this thread in evaluation mode: what
/// would calibrate itself with the first values it sees does so for this pass alone.
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
