#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/common/program.hpp"
#include "framework/data/dataset.hpp"

namespace quantrain::examples {

/// Flags of programs on images.
struct ImageFlags {
  int64_t shift = 0;  ///< augmentation: moves training images by up to this many pixels

  std::vector<ProgramFlag> flags();
};

/// Makes a task from images and their classes.
/// Throws: DataError like make_task(), or if the shift could move an image out of view.
Task classify_images(std::string dataset,
                     const Dataset& training,
                     const Dataset& test,
                     const Flags& flags,
                     const ImageFlags& image_flags);

struct MnistProgram {
  std::string name;
  std::string description;
  Flags defaults = {};
};

/// run() for a network on a folder with MNIST's four files.
int run_mnist(int argc,
              const char* const* argv,
              const MnistProgram& program,
              Sequential (*network)());

}  // namespace quantrain::examples
