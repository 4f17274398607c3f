#pragma once

#include <cstdint>

#include "examples/common/flags.hpp"
#include "examples/common/task.hpp"

namespace quantrain::examples {

/// The two-second sounds of anomaly_detection.
struct Clips {
  int64_t training = 300;    ///< healthy
  int64_t validation = 100;  ///< healthy, to choose the threshold on
  int64_t test = 300;        ///< healthy clips, and as many with faults
};

/// To reproduce the sound of healthy bearings: rows [N, 640] of five frames of 128 mel bands. The
/// score is the area under the ROC curve of each clip's mean squared error, which says how well the
/// error separates faulty from healthy bearings. When the network is deployed, the task prints how
/// many test clips lie above a threshold, which it chooses on the validation clips, and saves it.
/// Throws: DataError if there are fewer training rows than flags.limit.
Task detect_faults(const Flags& flags, const Clips& clips);

}  // namespace quantrain::examples
