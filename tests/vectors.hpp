#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/autograd/tensor.hpp"
#include "tests/catch.hpp"

// Compares tensors with values from PyTorch; tests/reference/make_vectors.py describes the files.
namespace quantrain::test {

using Json = nlohmann::json;

/// A section of operations.json, or of another file.
inline Json load_vectors(const char* section, const char* name = "operations.json") {
  std::ifstream file(std::string(QUANTRAIN_TEST_DATA) + "/" + name);
  REQUIRE(file.good());
  return Json::parse(file).at(section);
}

inline Tensor to_tensor(const Json& json) {
  return Tensor::from(Shape(json.at("shape").get<std::vector<int64_t>>()),
                      json.at("values").get<std::vector<float>>());
}

/// How far a float32 result may be from PyTorch's: absolutely (margin) or relatively (epsilon). One
/// of the two is enough. Each use gives the reason.
struct Tolerance {
  double margin = 0.0;
  double epsilon = 0.0;
};

inline void check_close(const Tensor& actual, const Json& expected, const Tolerance& tolerance) {
  const Tensor reference = to_tensor(expected);
  REQUIRE(actual.shape() == reference.shape());
  const Floats a = actual.floats();
  for (int64_t i = 0; i < actual.elements(); ++i) {
    CAPTURE(i);
    CHECK(a.data()[i] ==
          Approx(reference.data()[i]).margin(tolerance.margin).epsilon(tolerance.epsilon));
  }
}

}  // namespace quantrain::test
