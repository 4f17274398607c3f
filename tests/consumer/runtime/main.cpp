#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "framework/core/version.hpp"
#include "framework/io/safetensors.hpp"
#include "framework/kernels/integer/integer.hpp"

using namespace quantrain;

// Loads weights from memory and multiplies a row of codes by them.
int main() {
  const char* const header = R"({"w":{"dtype":"I8","shape":[2,3],"data_offsets":[0,6]}}      )";
  std::vector<uint8_t> file(8);
  for (const char* c = header; *c != '\0'; ++c) file.push_back(static_cast<uint8_t>(*c));
  file[0] = static_cast<uint8_t>(file.size() - 8);
  for (const int8_t w : {1, 2, 3, -4, 5, -6}) file.push_back(static_cast<uint8_t>(w));

  const std::vector<int8_t> weights = parse_safetensors(file, "memory").values<int8_t>("w");
  const kernels::PackedWeightsS8 packed(2, 3, weights.data());
  const kernels::ProductParams params(packed, 10, nullptr, nullptr);
  const std::vector<uint8_t> x{11, 12, 13};
  std::vector<int32_t> y(2);
  kernels::gemm_u8s8_s32(1, 3, x.data(), packed, params, y.data());
  std::printf("quantrain %s\n", version());
  return y == std::vector<int32_t>{1 + 4 + 9, -4 + 10 - 18} ? 0 : 1;
}
