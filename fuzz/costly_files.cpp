#include "fuzz/costly_files.hpp"

#include <cstring>
#include <utility>

#include "framework/data/csv.hpp"
#include "framework/data/idx.hpp"
#include "framework/data/image_folder.hpp"
#include "framework/data/npy.hpp"
#include "framework/integer/program_file.hpp"
#include "framework/io/safetensors.hpp"
#include "fuzz/harness.hpp"
#include "layers/network/network_file.hpp"
#include "layers/onnx/import_onnx.hpp"
#include "layers/training/position.hpp"
#include "quant/import/tflite/import_tflite.hpp"
#include "quant/prepare/qconfig.hpp"
#include "tests/framework/data/idx_files.hpp"
#include "tests/framework/data/npy_files.hpp"
#include "tests/framework/data/png_files.hpp"
#include "tests/layers/onnx/onnx_files.hpp"
#include "tests/quant/import/tflite_writer.hpp"

namespace quantrain::fuzz {
namespace {

using Bytes = std::vector<uint8_t>;
using Input = std::span<const uint8_t>;

constexpr int64_t kSize = int64_t{1} << 20;

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

/// begin + part + part + ... + end, of about kSize bytes. Each "#" in a part becomes its number.
std::string repeated(const std::string& begin, const std::string& part, const std::string& end) {
  std::string text = begin;
  for (int64_t i = 0; std::ssize(text) < kSize; ++i) {
    for (const char c : part) {
      if (c == '#') {
        text += std::to_string(i);
      } else {
        text += c;
      }
    }
  }
  if (text.ends_with(',')) text.pop_back();
  return text + end;
}

std::string text_of(Input input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

Bytes safetensors(const std::string& header) {
  const uint64_t size = header.size();
  Bytes bytes(sizeof size + header.size());
  std::memcpy(bytes.data(), &size, sizeof size);
  std::memcpy(bytes.data() + sizeof size, header.data(), header.size());
  return bytes;
}

/// A safetensors file that describes a network. tensors: members of the header.
Bytes with_network(const std::string& format,
                   const std::string& version,
                   const std::string& text,
                   const std::string& tensors = "") {
  std::string quoted;
  for (const char c : text) quoted += c == '"' ? std::string("\\\"") : std::string(1, c);
  return safetensors(R"({"__metadata__":{"format":")" + format + R"(","version":")" + version +
                     R"(","layout":"NHWC/OHWI","network":")" + quoted + "\"}" + tensors + "}");
}

/// Many products that share 2^21 weights of 2 bits.
Bytes with_shared_weights() {
  constexpr int kSteps = 3000;
  std::string values, steps;
  for (int i = 1; i <= kSteps; ++i) {
    values += R"(,{"name":"","shape":[1],"scale":[1]})";
    steps += (i == 1 ? "" : ",") +
             std::string(R"({"type":"quantized_linear","inputs":[0],"output":)") +
             std::to_string(i) +
             R"(,"members":{"rows":1,"inputs":2097152,"outputs":1,"zero_x":0,"weight":0}})";
  }
  Bytes bytes = with_network(
      "quantrain-integer",
      "2",
      R"({"values":[{"name":"","shape":[2097152],"codes":{"bits":8,"signed":false,)"
      R"("narrow":false,"scale":1,"zero_point":0}})" +
          values + R"(],"constants":[{"bits":2,"count":2097152}],"inputs":[0],"outputs":[1],)" +
          R"("steps":[)" + steps + "]}",
      R"(,"constants.0":{"dtype":"U8","shape":[524288],"data_offsets":[0,524288]})");
  bytes.resize(bytes.size() + 524288, 0x55);
  return bytes;
}

class Files {
 public:
  std::vector<CostlyFile> all;

  void csv() {
    const auto read = [](bool header) {
      return [header](Input input) {
        const MemoryFile file(input);
        const CsvTable table = read_csv(file.path(), {.header = header});
        table.floats(table.columns());
      };
    };
    std::string names, row;
    for (int64_t i = 0; std::ssize(names) + std::ssize(row) < kSize; ++i) {
      names += 'c' + std::to_string(i) + ',';
      row += "1,";
    }
    names.back() = row.back() = '\n';
    add("csv, names", names + row, read(true));
    add("csv, short names and no header", repeated("", "1,", "\n"), read(false));
    add("csv, rows", repeated("a\n", "1\n", ""), read(true));
    add("csv, tiny numbers", repeated("a\n", "1e-400\n", ""), read(true));
    add("csv, quotes", repeated("", "\"\",", "\n"), read(false));
    add("csv, classes", repeated("a\n", "#\n", ""), [](Input input) {
      const MemoryFile file(input);
      read_csv(file.path()).classes("a");
    });
  }

  void arrays() {
    const auto npy = [](Input input) {
      const MemoryFile file(input);
      const NpyArray array = read_npy(file.path());
      array.floats();
      array.labels();
    };
    const Bytes zeros(kSize);
    add("npy, bytes", test::npy("|u1", "(1048576,)", zeros), npy);
    add("npy, header", test::npy_of(std::string(kSize, '('), {}, 2), npy);
    const auto idx = [](Input input) {
      const MemoryFile file(input);
      read_idx_u8(file.path());
    };
    add("idx, plain", test::idx({1 << 20}, zeros), idx);
    add("idx, gzip", test::gzip(test::idx({1 << 26}, Bytes(1 << 26))), idx, 1 << 26);
    add("idx, a header that lies", test::gzip(test::idx({1 << 27}, zeros)), idx);
  }

  void images() {
#if QUANTRAIN_PNG
    const auto png = [](Input input) {
      const MemoryFile file(input);
      read_png(file.path(), 3);
    };
    const Bytes spaces = test::deflated(Bytes(8'000'000, ' '));
    Bytes text{'k', 0, 0};
    text.insert(text.end(), spaces.begin(), spaces.end());
    std::vector<test::PngChunk> chunks{{"iCCP", text}};
    for (int i = 0; i < 100; ++i) chunks.push_back({"zTXt", text});
    Bytes international{'k', 0, 1, 0, 0, 0};
    international.insert(international.end(), spaces.begin(), spaces.end());
    for (int i = 0; i < 30; ++i) chunks.push_back({"iTXt", international});
    add("png, packed texts", test::png(1, 1, {7}, 0, 8, chunks), png);
    chunks.assign(80'000, {"tEXt", {}});
    add("png, chunks", test::png(1, 1, {7}, 0, 8, chunks), png);
    add("png, flat", test::png(4000, 4000, Bytes(16'000'000), 0), png, 48'000'000);
    add("png, wide", test::png(1, 900'000, Bytes(900'000), 0), png, 2'700'000);
    Bytes longer = test::png(1, 1, {7}, 0, 8, {{"tRNS", {0, 1}}});
    longer[33] = 0x1f;  // the first byte of the length of tRNS
    add("png, a chunk that lies", longer, png);
    add("png, a header that lies", test::png(30'000, 30'000, {}, 0), png);
#endif
  }

  void tensors() {
    const auto read = [](Input input) { parse_safetensors(input, "input"); };
    const std::string entry = R"("#":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
    add("safetensors, entries", safetensors(repeated("{", entry, "}")), read);
    add("safetensors, texts",
        safetensors(repeated(R"({"__metadata__":{)", R"("#":"",)", "}}")),
        read);
    add("safetensors, a list", safetensors(repeated(R"({"a":[)", "0,", "]}")), read);
    add("safetensors, a long shape",
        safetensors(
            repeated(R"({"a":{"dtype":"U8","shape":[)", "1,", R"(],"data_offsets":[0,1]}})")),
        read);
    add("checkpoint, epochs",
        repeated(
            R"({"loader":"","batch":0,"steps":0,"loss_sum":0.0,"samples":0,"seconds":0.0,)"
            R"("learning_rate":0.1,"best_epoch":-1,"stopped_early":false,"ended":true,"epochs":[)",
            R"({"epoch":#,"steps":0,"loss":0.0,"learning_rate":0.1,"seconds":0.0,"metrics":[]},)",
            "]}"),
        [](Input input) { position_from(text_of(input)); });
  }

  void networks() {
    const auto model = [](Input input) { integer::parse_program(input, "input"); };
    add("integer model, values",
        with_network("quantrain-integer", "2", repeated(R"({"values":[)", "{},", "]}")),
        model);
    add("integer model, steps",
        with_network("quantrain-integer",
                     "2",
                     repeated(R"({"values":[],"inputs":[],"outputs":[],"steps":[)", "{},", "]}")),
        model);
    add("integer model, shared weights", with_shared_weights(), model);
    add("network, steps",
        with_network("quantrain-network",
                     "1",
                     repeated(R"({"inputs":[],"tensors":[],"outputs":[],"steps":[)", "{},", "]}")),
        [](Input input) { parse_network(input, "input"); });
    add("qconfig, layers",
        repeated(R"({"model":{},"types":{},"layers":{)", R"("#":{},)", "}}"),
        [](Input input) { quant::QConfig::from_json(text_of(input)); });
    tflite::test::FileSpec spec;
    for (int i = 0; i < 16'000; ++i) spec.add({.shape = {1}});
    add("tflite, tensors", spec.write(), [](Input input) { import_tflite(input, "input"); });
  }

  void onnx() {
    const auto read = [](Input input) {
      const MemoryFile file(input);
      import_onnx(file.path());
    };
    // part(i) in a field of a graph or of a node, again and again.
    const auto filled = [](test::Proto message, uint32_t field, const auto& part) {
      for (int64_t i = 0; std::ssize(message.bytes) < kSize; ++i)
        message.message(field, part(std::to_string(i)));
      return message;
    };
    const auto model = [](const test::Proto& graph) {
      const test::Proto version = test::Proto().integer(2, 17);
      return test::Proto().integer(1, 8).message(8, version).message(7, graph).file();
    };
    const auto graph_of = [&](uint32_t field, const auto& part) {
      return model(filled({}, field, part));
    };
    const auto node_of = [&](uint32_t field, const auto& part) {
      return model(test::Proto().message(1, filled(test::onnx_node("A", {}, {"y"}), field, part)));
    };
    add("onnx, nodes",
        graph_of(1, [](const std::string& i) { return test::onnx_node("Relu", {"x"}, {i}); }),
        read);
    add("onnx, a chain",
        graph_of(1,
                 [](const std::string& i) {
                   return test::onnx_node("Relu", {std::to_string(std::stoi(i) - 1)}, {i});
                 }),
        read);
    add("onnx, tensors",
        graph_of(5, [](const std::string& i) { return test::onnx_tensor(i, 1, {0}); }),
        read);
    add("onnx, inputs",
        graph_of(11, [](const std::string& i) { return test::onnx_value(i, {-1}); }),
        read);
    add("onnx, attributes",
        node_of(5, [](const std::string& i) { return test::onnx_attribute(i, int64_t{1}); }),
        read);
    add("onnx, names", node_of(1, [](const std::string&) { return test::Proto(); }), read);
    add("onnx, extents",
        graph_of(5,
                 [](const std::string&) {
                   return test::Proto().text(1, std::string(static_cast<size_t>(kSize), '\1'));
                 }),
        read);
  }

 private:
  void add(std::string name, Bytes bytes, std::function<void(Input)> read, int64_t declared = 0) {
    all.push_back({std::move(name), std::move(bytes), std::move(read), declared});
  }
  void add(std::string name, const std::string& text, std::function<void(Input)> read) {
    add(std::move(name), bytes_of(text), std::move(read));
  }
};

}  // namespace

std::vector<CostlyFile> costly_files() {
  Files files;
  files.csv();
  files.arrays();
  files.images();
  files.tensors();
  files.networks();
  files.onnx();
  return std::move(files.all);
}

}  // namespace quantrain::fuzz
