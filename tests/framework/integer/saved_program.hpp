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

/// A saved program. Its functions load changed copies of the file.
class SavedProgram {
 public:
  SavedProgram() {
    save_program(path(), every_operation());
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
