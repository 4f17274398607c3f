#include "layers/dry_run.hpp"

#include <utility>

namespace quantrain {
namespace {

thread_local bool dry_run = false;

}  // namespace

DryRun::DryRun() : previous_(std::exchange(dry_run, true)) {}
DryRun::~DryRun() { dry_run = previous_; }
bool DryRun::on() { return dry_run; }

}  // namespace quantrain
