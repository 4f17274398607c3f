#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "framework/core/random.hpp"
#include "quant/import/tflite/import_tflite.hpp"
#include "tests/catch.hpp"
#include "tests/quant/import/sample_files.hpp"

// Runs small .tflite files and compares them with real arithmetic.
namespace quantrain::tflite::test {

using Codes = std::vector<int>;

/// Number of elements of a tensor.
inline int64_t size_of(const TensorSpec& t) {
  int64_t size = 1;
  for (const int32_t extent : t.shape) size *= extent;
  return size;
}

/// Random codes for a tensor of activations, those of the file.
inline Codes random_codes(const TensorSpec& t, uint64_t seed) {
  Random random(seed);
  Codes codes;
  for (int64_t i = 0; i < size_of(t); ++i)
    codes.push_back(static_cast<int>(random.below(256)) - (t.type == kUint8 ? 0 : 128));
  return codes;
}

inline IntegerModel import(const FileSpec& file) {
  const std::vector<uint8_t> bytes = file.write();
  return import_tflite(bytes, "test.tflite");
}

/// The codes of an output for the codes of all inputs, both as in the file.
inline Codes run(const FileSpec& file, const std::vector<Codes>& inputs, size_t output = 0) {
  const IntegerModel model = import(file);
  std::vector<std::vector<uint8_t>> x;
  std::vector<std::vector<int32_t>> y;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int offset = model.input_params(i).type.is_signed ? 128 : 0;
    std::vector<uint8_t>& bytes = x.emplace_back();
    for (const int code : inputs[i]) bytes.push_back(static_cast<uint8_t>(code + offset));
  }
  for (size_t i = 0; i < model.output_count(); ++i)
    y.emplace_back(static_cast<size_t>(model.output_size(i)));
  const std::vector<std::span<const uint8_t>> from(x.begin(), x.end());
  const std::vector<std::span<int32_t>> to(y.begin(), y.end());
  model.run_codes(from, to);
  const int32_t zero = model.program().value(model.program().outputs[output]).params->zero_point[0];
  Codes codes;
  for (const int32_t integer : y[output]) codes.push_back(integer + zero);
  return codes;
}

/// Real value of a code of the tensor.
inline double real(const TensorSpec& t, int code) {
  return double{t.scale[0]} * static_cast<double>(code - t.zero_point[0]);
}

/// Checks that each code is the nearest one of the real value. Two codes are equally near at a tie,
/// up to the rounding of multipliers to 31 bits.
inline void check_nearest(const TensorSpec& t,
                          const Codes& codes,
                          const std::vector<double>& values,
                          double lo = -1e30,
                          double hi = 1e30) {
  REQUIRE(codes.size() == values.size());
  const double least = t.type == kUint8 ? 0 : -128;
  int64_t far = 0, ends = 0;
  for (size_t i = 0; i < codes.size(); ++i) {
    const double value = std::clamp(values[i], lo, hi);
    const double exact = value / double{t.scale[0]} + static_cast<double>(t.zero_point[0]);
    const double clamped = std::clamp(exact, least, least + 255);
    if (std::abs(codes[i] - clamped) > 0.5001) ++far;
    ends += codes[i] == least || codes[i] == least + 255;
  }
  CHECK(far == 0);
  // Values that all saturate would test nothing.
  CHECK(ends < static_cast<int64_t>(codes.size()));
}

/// A file with one operation on tensor 0, whose codes are tensor `y`.
inline FileSpec file_of(std::vector<TensorSpec> tensors, OperationSpec operation) {
  FileSpec file;
  for (TensorSpec& tensor : tensors) file.add(std::move(tensor));
  file.inputs = {0};
  file.outputs = {operation.outputs[0]};
  file.operations = {std::move(operation)};
  return file;
}

}  // namespace quantrain::tflite::test
