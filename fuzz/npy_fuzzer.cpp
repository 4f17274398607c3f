// Reads a .npy file, then its values as floats and as labels.
#include "framework/core/error.hpp"
#include "framework/data/npy.hpp"
#include "fuzz/harness.hpp"

namespace quantrain::fuzz {

bool accepts(std::span<const uint8_t> input) {
  const MemoryFile file(input);
  const NpyArray array = read_npy(file.path());
  const auto elements = static_cast<size_t>(array.shape.elements());
  if (array.bytes.size() != elements * static_cast<size_t>(size_of(array.type)))
    finding("the bytes do not fill the shape");
  if (array.bytes.size() >= input.size())
    finding("the values have at least as many bytes as the whole file");
  try {
    if (array.floats().size() != elements) finding("the floats do not fill the shape");
    if (array.labels().size() != elements) finding("the labels do not fill the shape");
  } catch (const Error&) {  // a float64 beyond float32, or labels that are not integers
  }
  return true;
}

}  // namespace quantrain::fuzz
