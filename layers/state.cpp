#include "layers/state.hpp"

#include <algorithm>

#include "framework/autograd/parameters.hpp"
#include "framework/core/error.hpp"
#include "framework/io/safetensors.hpp"
#include "layers/read_state.hpp"

namespace quantrain {
namespace {

/// Whether the tensor with this path belongs to a module in one of a layer's Slots. Its path then
/// contains the slot's name, as in "0.weight_slot.scale".
bool is_of_slot(std::string_view path) {
  for (size_t first = 0; first <= path.size();) {
    const std::string_view name = path.substr(first, path.find('.', first) - first);
    first += name.size() + 1;
    if (name == "weight_slot" || name == "body_slot" || name == "output_slot") return true;
    // From the second input on, the slot's name ends with the index of the input.
    constexpr std::string_view kInput = "input_slot";
    if (name.starts_with(kInput) &&
        name.find_first_not_of("0123456789", kInput.size()) == std::string_view::npos) {
      return true;
    }
  }
  return false;
}

// Throws if only one of file and network is prepared for quantization. A prepared network is
// recognized by its filled slots.
void check_prepared_alike(const std::string& path,
                          const TensorFile& file,
                          const std::vector<NamedState>& own) {
  const bool in_file =
      std::any_of(file.entries().begin(), file.entries().end(), [](const TensorFile::Entry& entry) {
        return is_of_slot(entry.name);
      });
  const bool in_module = std::any_of(
      own.begin(), own.end(), [](const NamedState& entry) { return is_of_slot(entry.name); });
  const auto format = file.metadata.find("format");
  const bool other_format = format != file.metadata.end() && format->second != "quantrain";
  if (in_file == in_module || other_format) return;  // load_parameters() refuses other formats
  throw DataError("load",
                  path,
                  in_file ? ": comes from a network prepared for quantization, but this network is "
                            "not prepared: first prepare it in the same way, by prepare_qat or "
                            "prepare_ptq, then load the file"
                          : ": comes from a float network, but this network is prepared for "
                            "quantization: load the file before prepare_qat or prepare_ptq");
}

// Throws if the file's format is not one of quantrain's, and says how to read it.
void check_own(const std::string& path, const TensorFile& file) {
  const auto format = file.metadata.find("format");
  if (file.metadata.contains("layout") ||
      (format != file.metadata.end() && format->second.starts_with("quantrain")))
    return;
  throw DataError(
      "load",
      path,
      ": was not written by quantrain's save(). If it holds a PyTorch network's state_dict(), read "
      "it with load_pytorch(net, example, path), of layers/pytorch_weights.hpp; else read on in "
      "docs/guide/weights.md");
}

}  // namespace

std::vector<NamedState> state(const Module& module) {
  std::vector<NamedState> all = module.named_parameters();
  for (NamedState& buffer : module.named_buffers()) all.push_back(std::move(buffer));
  return all;
}

void copy_state(const Module& from, Module& to) {
  const std::vector<NamedState> source = state(from);
  std::vector<NamedState> target = state(to);
  for (size_t i = 0; i < std::max(source.size(), target.size()); ++i) {
    if (i >= source.size() || i >= target.size() || source[i].name != target[i].name) {
      const NamedState& odd = i < source.size() ? source[i] : target[i];
      throw GraphError("copy_state", "the modules differ at \"", odd.name, "\"");
    }
    target[i].check_values(source[i], "copy_state");
    const auto same = [](std::span<const uint8_t> a, std::span<const uint8_t> b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end());
    };
    if (target[i].constant && !same(source[i].bytes(), target[i].bytes())) {
      throw GraphError("copy_state",
                       '"',
                       source[i].name,
                       "\" differs from the value that the target was made with");
    }
  }
  for (size_t i = 0; i < source.size(); ++i) {
    if (!target[i].constant) target[i].copy_values(source[i]);
  }
}

void save(const Module& module,
          const std::string& path,
          const std::map<std::string, std::string>& metadata) {
  save_parameters(path, state(module), metadata);
}

std::map<std::string, std::string> load(Module& module, const std::string& path) {
  TensorFile file = read_state("load", path);
  check_own(path, file);
  const std::vector<NamedState> own = state(module);
  check_prepared_alike(path, file, own);
  load_parameters(path, file, own);
  for (const char* key : {"format", "version", "layout"}) file.metadata.erase(key);
  return std::move(file.metadata);
}

}  // namespace quantrain
