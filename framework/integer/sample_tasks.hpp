#pragma once

#include <cstdint>

#include "framework/integer/program.hpp"

// How threads share a run of many samples.
namespace quantrain::integer {

/// Least number of samples of a task that takes whole samples through all steps (sample_tasks()):
/// enough for about ten microseconds of work, and enough for their values to be as large as the
/// weights that the task reads, but for this reason at most 32.
int64_t least_samples_per_task(const Program& program);
/// How threads() threads share a run of n samples. If the result is 1, all threads share each step.
/// Otherwise there are this many tasks, and task t takes the samples
/// [n t / tasks, n (t + 1) / tasks) through all steps: threads then do not wait for each other
/// after each step, and what a step writes is still in the cache of the core that reads it. The
/// number of tasks is a multiple of threads(). It is 1 if tasks would get fewer samples than
/// `least`, or if threads would wait for more than a tenth of the time.
int64_t sample_tasks(int64_t least, int64_t n);
/// With fewer samples, one thread computes this step, where threads would otherwise share each
/// step: a share of the work would be so small that it takes longer to wake a thread and to fetch
/// its inputs from another core's cache.
int64_t least_samples_to_share(const Operation& op);

}  // namespace quantrain::integer
