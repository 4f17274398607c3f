#include "layers/dry_run.hpp"

namespace quantrain {
namespace {

thread_local int dry_runs = 0;  // living ones

}  // namespace

DryRun::DryRun() { ++dry_runs; }
DryRun::~DryRun() { --dry_runs; }
bool DryRun::on() { return dry_runs > 0; }

}  // namespace quantrain
