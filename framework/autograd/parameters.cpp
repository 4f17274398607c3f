#include "framework/autograd/parameters.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/io/format.hpp"

namespace quantrain {
namespace {

constexpr const char* kFormat = "quantrain";
constexpr const char* kVersion = "1";

// Compares bits, because saving and loading keep every bit of a constant.
void check_constant(const std::string& path,
                    const std::string& name,
                    const Tensor& tensor,
                    const std::vector<float>& values) {
  const Floats own = tensor.floats();
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::bit_cast<uint32_t>(values[i]) == std::bit_cast<uint32_t>(own.data()[i])) continue;
    throw DataError("load",
                    path,
                    ": \"",
                    name,
                    "\" has ",
                    values[i],
                    " at ",
                    i,
                    ", but this network was made with ",
                    own.data()[i],
                    ": make the network in the same way as the one that was saved");
  }
}

}  // namespace

void save_parameters(const std::string& path,
                     std::span<const NamedTensor> tensors,
                     const std::map<std::string, std::string>& metadata) {
  TensorFile file;
  set_format(file, kFormat, kVersion);
  for (const auto& [key, value] : metadata) {
    if (!file.metadata.emplace(key, value).second) {
      throw DataError("save", path, ": \"", key, "\" is reserved for the file");
    }
  }
  for (const NamedTensor& entry : tensors) {
    const Tensor& tensor = entry.tensor;
    const Floats values = tensor.floats();
    file.add<float>(
        entry.name, tensor.shape(), {values.data(), static_cast<size_t>(tensor.elements())});
  }
  save_safetensors(path, file);
}

void load_parameters(const std::string& path, std::span<const NamedTensor> tensors) {
  load_parameters(path, load_safetensors(path), tensors);
}

void load_parameters(const std::string& path,
                     const TensorFile& file,
                     std::span<const NamedTensor> tensors) {
  check_format(path, file, kFormat, kVersion);
  std::vector<const TensorFile::Entry*> sources;
  for (const auto& [name, tensor, constant] : tensors) {
    if (!file.contains(name)) {
      throw DataError("load",
                      path,
                      ": lacks \"",
                      name,
                      "\": it was saved from another network, or by an older version");
    }
    const TensorFile::Entry& entry = file.at(name);
    if (entry.dtype != DType::kF32) {
      throw DataError(
          "load", path, ": \"", name, "\" is ", dtype_name(entry.dtype), ", expected F32");
    }
    if (!(entry.shape == tensor.shape())) {
      throw DataError(
          "load", path, ": \"", name, "\" has shape ", entry.shape, ", expected ", tensor.shape());
    }
    if (tensor.kind() != ValueKind::kFloat)
      throw DataError("load", "\"", name, "\" does not hold floats");
    if (constant) check_constant(path, name, tensor, file.values<float>(name));
    sources.push_back(&entry);
  }
  for (const TensorFile::Entry& entry : file.entries()) {
    const bool wanted = std::find(sources.begin(), sources.end(), &entry) != sources.end();
    if (!wanted)
      throw DataError("load", path, ": has \"", entry.name, "\", but no tensor here has this name");
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].constant) continue;
    Tensor tensor = tensors[i].tensor;
    std::copy(sources[i]->bytes.begin(),
              sources[i]->bytes.end(),
              reinterpret_cast<uint8_t*>(tensor.mutable_data()));
  }
}

}  // namespace quantrain
