// Reads a safetensors file as tensors and, if it names a format, as the state of a network prepared
// for quantization.
#include "framework/io/safetensors.hpp"
#include "fuzz/harness.hpp"
#include "fuzz/network.hpp"
#include "layers/state.hpp"

namespace quantrain::fuzz {

bool accepts(std::span<const uint8_t> input) {
  const TensorFile file = parse_safetensors(input, "input");
  // The bytes of each tensor must fill its shape.
  for (const TensorFile::Entry& entry : file.entries()) {
    if (static_cast<int64_t>(entry.bytes.size()) !=
        entry.shape.elements() * dtype_size(entry.dtype))
      finding(entry.name + " does not fill its shape");
  }
  if (!file.metadata.contains("format")) return true;
  static Sequential net = prepared_network();
  const MemoryFile path(input);
  load(net, path.path());
  const NoGrad no_grad;
  net.eval();
  net(example());
  return true;
}

}  // namespace quantrain::fuzz
