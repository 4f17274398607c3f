#pragma once

#include <string>

#include "framework/data/dataset.hpp"

namespace quantrain {

/// Reads CIFAR-10's binary files from a folder: data_batch_1.bin to data_batch_5.bin, or
/// test_batch.bin. Images [32, 32, 3] of 10 classes, in the order of the files.
/// Throws: DataError naming the path if a file is missing or empty, does not hold whole images, or
/// holds more than 10,000 images or a label above 9.
/// Source: Krizhevsky 2009; cs.toronto.edu/~kriz/cifar.html, "Binary version"
Dataset read_cifar10(const std::string& folder, Split split);

}  // namespace quantrain
