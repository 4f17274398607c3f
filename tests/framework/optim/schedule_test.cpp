#include "framework/optim/schedule.hpp"

#include <cmath>
#include <limits>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"

namespace quantrain {

TEST_CASE("a step schedule lowers the rate at regular intervals", "[optim][schedule]") {
  const Schedule schedule = step_schedule(0.5f, {.every = 3, .factor = 0.5f});
  const float expected[] = {0.5f, 0.5f, 0.5f, 0.25f, 0.25f, 0.25f, 0.125f};
  for (int64_t step = 0; step < 7; ++step) CHECK(schedule(step) == expected[step]);
  CHECK(schedule(int64_t{1} << 50) == 0.0f);
  CHECK(step_schedule(0.5f, {.every = 1, .factor = 1.0f})(int64_t{1} << 50) == 0.5f);
}

TEST_CASE("a cosine schedule follows half a cosine from the rate to the minimum",
          "[optim][schedule]") {
  const double pi = 3.14159265358979323846;
  const Schedule schedule = cosine_schedule(0.5f, {.steps = 40, .minimum = 0.125f});
  CHECK(schedule(0) == 0.5f);
  CHECK(schedule(20) == 0.3125f);
  CHECK(schedule(40) == 0.125f);
  CHECK(schedule(1000) == 0.125f);
  for (int64_t step = 0; step <= 40; ++step) {
    const double expected =
        0.125 + 0.375 * (1.0 + std::cos(pi * static_cast<double>(step) / 40.0)) / 2.0;
    CHECK(std::abs(schedule(step) - expected) < 0x1p-24);  // rounding to float
  }
}

TEST_CASE("a schedule warms up linearly and then continues as without a warm-up",
          "[optim][schedule]") {
  const Schedule cosine = cosine_schedule(0.5f, {.steps = 14, .warm_up = 4});
  const Schedule plain = cosine_schedule(0.5f, {.steps = 10});
  const Schedule steps = step_schedule(0.5f, {.every = 100, .warm_up = 4});
  const float rising[] = {0.125f, 0.25f, 0.375f, 0.5f};
  for (int64_t step = 0; step < 4; ++step) {
    CHECK(cosine(step) == rising[step]);
    CHECK(steps(step) == rising[step]);
  }
  for (int64_t step = 4; step < 16; ++step) CHECK(cosine(step) == plain(step - 4));
}

TEST_CASE("schedules that make no sense are rejected", "[optim][schedule]") {
  QUANTRAIN_CHECK_ERROR(step_schedule(0.0f, {}), DataError, "[step_schedule] learning rate is 0");
  QUANTRAIN_CHECK_ERROR(
      step_schedule(1.0f, {.every = 0}), DataError, "`every` is 0, expected at least 1");
  QUANTRAIN_CHECK_ERROR(step_schedule(1.0f, {.factor = -1.0f}), DataError, "factor is -1");
  QUANTRAIN_CHECK_ERROR(
      step_schedule(1.0f, {.warm_up = -1}), DataError, "`warm_up` is -1, expected at least 0");
  QUANTRAIN_CHECK_ERROR(
      cosine_schedule(-1.0f, {}), DataError, "[cosine_schedule] learning rate is -1");
  QUANTRAIN_CHECK_ERROR(
      cosine_schedule(1.0f, {.steps = 0}), DataError, "`warm_up` is 0 of 0 steps");
  QUANTRAIN_CHECK_ERROR(cosine_schedule(1.0f, {.steps = 3, .warm_up = 3}),
                        DataError,
                        "`warm_up` is 3 of 3 steps, expected 0 or more, and fewer than all");
  QUANTRAIN_CHECK_ERROR(cosine_schedule(1.0f, {.steps = 3, .minimum = 2.0f}),
                        DataError,
                        "minimum is 2, expected 0 to 1");
  QUANTRAIN_CHECK_ERROR(cosine_schedule(std::numeric_limits<float>::infinity(), {}),
                        DataError,
                        "learning rate is inf");
}

}  // namespace quantrain
