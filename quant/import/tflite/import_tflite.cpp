#include "quant/import/tflite/import_tflite.hpp"

#include <vector>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/integer/memory_plan.hpp"
#include "framework/integer/program_file.hpp"
#include "quant/import/tflite/file.hpp"
#include "quant/import/tflite/lowering.hpp"

namespace quantrain {

IntegerModel import_tflite(std::span<const uint8_t> bytes,
                           std::string_view where,
                           std::optional<int64_t> memory_limit) {
  const tflite::Flatbuffer flatbuffer(bytes, "TFL3", where);
  const tflite::File file = read_file(flatbuffer);
  integer::Program program = tflite::Lowering(file, where, flatbuffer.size()).run();
  check_memory(program, memory_limit.value_or(integer::memory_limit(flatbuffer.size())), where);
  return IntegerModel(std::move(program));
}

IntegerModel import_tflite(const std::string& path, std::optional<int64_t> memory_limit) {
  InputFile file(path);
  std::vector<uint8_t> bytes(static_cast<size_t>(file.left()));
  if (file.read(bytes) != bytes.size()) throw DataError(path, "became shorter while it was read");
  return import_tflite(bytes, path, memory_limit);
}

}  // namespace quantrain
