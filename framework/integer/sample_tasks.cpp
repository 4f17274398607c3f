#include "framework/integer/sample_tasks.hpp"

#include <algorithm>

#include "framework/core/parallel.hpp"
#include "framework/integer/memory_plan.hpp"
#include "framework/kernels/integer/channels.hpp"

namespace quantrain::integer {

int64_t least_samples_per_task(const Program& program) {
  constexpr int64_t kLeast = 4;
  constexpr int64_t kManyForWeights = 32;
  int64_t outputs = 0;
  int64_t weights = 0;
  int64_t values = 0;
  for (const int id : program.inputs) values += padded_bytes(program.value(id));
  for (const Step& step : program.steps) {
    outputs += output_size(step.operation);
    weights += prepared_bytes(step.operation);
    values += padded_bytes(program.value(step.output));
  }
  const int64_t work = multiply_adds(program) + kernels::kOutputProducts * outputs;
  return std::max({kLeast,
                   kernels::kBlockProducts / std::max<int64_t>(work, 1),
                   std::min(weights / std::max<int64_t>(values, 1), kManyForWeights)});
}

int64_t least_samples_to_share(const Operation& op) {
  constexpr int64_t kShared = 4 * kernels::kBlockProducts;
  const int64_t products = multiply_adds(op);
  if (products == 0) return 0;  // these operations have larger blocks
  const int64_t work = products + kernels::kOutputProducts * output_size(op);
  return kShared / work + 1;
}

int64_t sample_tasks(int64_t least, int64_t n) {
  constexpr int64_t kMost = 16;  // samples; with more, threads only finish less evenly
  if (n < 2 * least) return 1;   // the usual case of a few samples, without asking for threads()
  const int64_t workers = threads();
  if (workers == 1) return 1;
  const int64_t rounds =
      std::min(std::max<int64_t>(n / (workers * kMost), 1), n / (workers * least));
  const int64_t tasks = rounds * workers;
  if (tasks == 0) return 1;
  const int64_t largest = (n + tasks - 1) / tasks;
  return 10 * largest * tasks <= 11 * n ? tasks : 1;
}

}  // namespace quantrain::integer
