#include "layers/state.hpp"

#include <algorithm>

#include "framework/autograd/parameters.hpp"
#include "framework/core/error.hpp"

namespace quantrain {

std::vector<NamedTensor> state(const Module& module) {
  std::vector<NamedTensor> all = module.named_parameters();
  for (NamedTensor& buffer : module.named_buffers()) all.push_back(std::move(buffer));
  return all;
}

void copy_state(const Module& from, Module& to) {
  const std::vector<NamedTensor> source = state(from);
  std::vector<NamedTensor> target = state(to);
  for (size_t i = 0; i < std::max(source.size(), target.size()); ++i) {
    if (i >= source.size() || i >= target.size() || source[i].name != target[i].name) {
      const NamedTensor& odd = i < source.size() ? source[i] : target[i];
      throw GraphError("copy_state", "the modules differ at \"", odd.name, "\"");
    }
    if (!(source[i].tensor.shape() == target[i].tensor.shape())) {
      throw ShapeError("copy_state",
                       '"',
                       source[i].name,
                       "\" has shape ",
                       source[i].tensor.shape(),
                       ", the target ",
                       target[i].tensor.shape());
    }
    const float* const values = source[i].tensor.data();
    if (target[i].constant &&
        !std::equal(values, values + source[i].tensor.elements(), target[i].tensor.data())) {
      throw GraphError("copy_state",
                       '"',
                       source[i].name,
                       "\" has another value in the target, where it is given");
    }
  }
  for (size_t i = 0; i < source.size(); ++i) {
    if (target[i].constant) continue;
    std::copy_n(
        source[i].tensor.data(), source[i].tensor.elements(), target[i].tensor.mutable_data());
  }
}

void save(const Module& module,
          const std::string& path,
          const std::map<std::string, std::string>& metadata) {
  save_parameters(path, state(module), metadata);
}

void load(Module& module, const std::string& path) { load_parameters(path, state(module)); }

}  // namespace quantrain
