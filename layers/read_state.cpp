#include "layers/read_state.hpp"

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"

namespace quantrain {

TensorFile read_state(std::string_view where, const std::string& path) {
  try {
    return load_safetensors(path);
  } catch (const DataError&) {
    uint8_t first[2] = {0, 0};
    const bool is_zip = InputFile(path).read(first) == 2 && first[0] == 'P' && first[1] == 'K';
    if (!is_zip) throw;
    throw DataError(where,
                    path,
                    ": is a zip archive, as torch.save() writes it. In Python, write "
                    "safetensors.torch.save_file(net.state_dict(), path) instead, then read it "
                    "with load_pytorch(net, example, path)");
  }
}

}  // namespace quantrain
