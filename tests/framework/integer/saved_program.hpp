#pragma once

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/integer/program_file.hpp"
#include "framework/io/safetensors.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::integer::test {

using Json = nlohmann::ordered_json;

/// The content of a file as early versions of 0.2 wrote it: each step has its own weights, in
/// fields of 2, 4 or 8 bits, and its own biases.
inline TensorFile early_form(const TensorFile& file, const Program& program) {
  Json network = Json::parse(file.metadata.at("network"));
  network.erase("constants");
  TensorFile early;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const QuantizedProduct* const p = product(program.steps[i].operation);
    if (p == nullptr) continue;
    const int bits = p->weight.bits(), width = bits == 2 ? 2 : bits <= 4 ? 4 : 8;
    Json& members = network["steps"][i]["members"];
    members.erase("weight");
    members.erase("bias");
    members["weight_bits"] = bits;
    members["weights"] = p->weight.size();
    std::vector<uint8_t> packed;
    int64_t bit = 0;
    for (const int8_t weight : p->weight.values()) {
      if (bit % 8 == 0) packed.push_back(0);
      const int field = weight & ((1 << width) - 1);
      packed.back() = static_cast<uint8_t>(packed.back() | field << (bit % 8));
      bit += width;
    }
    const std::string prefix = std::to_string(i) + ".";
    early.add<uint8_t>(prefix + "weight", {std::ssize(packed)}, packed);
    const std::vector<int32_t> bias(p->bias.begin(), p->bias.end());
    if (!bias.empty()) early.add<int32_t>(prefix + "bias", {std::ssize(bias)}, bias);
  }
  for (const TensorFile::Entry& entry : file.entries()) {
    if (!entry.name.starts_with("constants.")) early.add(entry);
  }
  early.metadata = file.metadata;
  early.metadata["network"] = network.dump();
  return early;
}

/// A saved program. Its functions load changed copies of the file.
class SavedProgram {
 public:
  explicit SavedProgram(const Program& program = every_operation(), bool early = false) {
    save_program(path(), program);
    if (early) save_safetensors(path(), early_form(load_safetensors(path()), program));
    bytes_ = quantrain::test::read_bytes(path());
  }
  std::string path() const { return folder_ / "program.safetensors"; }
  Json network() const { return Json::parse(load_safetensors(path()).metadata.at("network")); }

  Program load_changed(const std::function<void(TensorFile&)>& change) const {
    TensorFile file = load_safetensors(path());
    change(file);
    const std::string changed = folder_ / "changed.safetensors";
    save_safetensors(changed, file);
    return load_program(changed);
  }
  /// Replaces the network in the file's header, and loads the file from memory. A file begins with
  /// 8 bytes that hold the header's length.
  Program load_network(const Json& network) const {
    uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), sizeof(length));
    const auto data = bytes_.begin() + static_cast<std::ptrdiff_t>(sizeof(length) + length);
    Json header = Json::parse(bytes_.begin() + sizeof(length), data);
    header["__metadata__"]["network"] = network.dump();
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    length = text.size();
    std::vector<uint8_t> file(sizeof(length));
    std::memcpy(file.data(), &length, sizeof(length));
    file.insert(file.end(), text.begin(), text.end());
    file.insert(file.end(), data, bytes_.end());
    return parse_program(file, "changed");
  }
  Program load_edited(const std::function<void(Json&)>& change) const {
    Json json = network();
    change(json);
    return load_network(json);
  }
  /// Loads the file without the tensor `name`. `add` may put another one in its place.
  Program load_with(const std::string& name, const std::function<void(TensorFile&)>& add) const {
    return load_changed([&](TensorFile& file) {
      TensorFile copy;
      copy.metadata = file.metadata;
      for (const TensorFile::Entry& entry : file.entries()) {
        if (entry.name != name) copy.add(entry);
      }
      add(copy);
      file = std::move(copy);
    });
  }

 private:
  quantrain::test::TemporaryFolder folder_;
  std::vector<uint8_t> bytes_;
};

}  // namespace quantrain::integer::test
