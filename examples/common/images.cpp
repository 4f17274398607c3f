#include "examples/common/images.hpp"

#include <algorithm>

#include "examples/common/report.hpp"
#include "framework/core/error.hpp"

namespace quantrain::examples {

std::vector<ProgramFlag> ImageFlags::flags() {
  return {{"--shift", "augmentation: move training images by up to N pixels", &shift}};
}

Task classify_images(std::string dataset,
                     const Dataset& training,
                     const Dataset& test,
                     const Flags& flags,
                     const ImageFlags& image_flags) {
  const Shape& image = training.image_shape();
  const int64_t shift = image_flags.shift;
  if (shift >= std::min(image[0], image[1])) {
    throw DataError("flags",
                    "--shift ",
                    shift,
                    " can move an image ",
                    image,
                    " out of view: use less than ",
                    std::min(image[0], image[1]));
  }
  Task task = make_classification(std::move(dataset), training, test, flags.limit);
  task.settings = "--shift " + std::to_string(shift);
  if (shift > 0) task.augment = random_shift(shift);
  return task;
}

int run_mnist(int argc,
              const char* const* argv,
              const MnistProgram& program,
              Sequential (*network)()) {
  ImageFlags image_flags;
  return run(argc,
             argv,
             {.name = program.name,
              .line = {.description = program.description,
                       .data = "folder with the four IDX files, gzipped or not",
                       .defaults = program.defaults,
                       .flags = image_flags.flags()},
              .task =
                  [&](const Flags& flags) {
                    const Dataset training = Dataset::mnist(flags.data, Split::kTrain);
                    const Dataset test = Dataset::mnist(flags.data, Split::kTest);
                    return classify_images(
                        dataset_name(flags.data), training, test, flags, image_flags);
                  },
              .network = [&](const Task&) { return network(); }});
}

}  // namespace quantrain::examples
