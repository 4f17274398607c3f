#include "framework/autograd/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/io/format.hpp"

namespace quantrain {
namespace {

constexpr const char* kFormat = "quantrain";
constexpr const char* kVersion = "1";
constexpr float kDigit = 0x1p24f;  // early files hold counts as two digits in this base

// Compares bits, because saving and loading keep every bit of a constant.
template <class T>
void check_constant(const std::string& path, const NamedState& own, const std::vector<T>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    T expected;
    std::memcpy(&expected, own.bytes().data() + i * sizeof(T), sizeof(T));
    if (std::memcmp(&values[i], &expected, sizeof(T)) == 0) continue;
    throw DataError("load",
                    path,
                    ": \"",
                    own.name,
                    "\" has ",
                    values[i],
                    " at ",
                    i,
                    ", but this network was made with ",
                    expected,
                    ": make the network in the same way as the one that was saved");
  }
}

[[noreturn]] void refuse_shape(const std::string& path,
                               const TensorFile::Entry& entry,
                               const Shape& expected) {
  throw DataError(
      "load", path, ": \"", entry.name, "\" has shape ", entry.shape, ", expected ", expected);
}

[[noreturn]] void refuse_type(const std::string& path,
                              const TensorFile::Entry& entry,
                              DType expected) {
  throw DataError("load",
                  path,
                  ": \"",
                  entry.name,
                  "\" is ",
                  dtype_name(entry.dtype),
                  ", expected ",
                  dtype_name(expected));
}

// The integers that an early file holds as floats.
std::vector<int64_t> whole_numbers(const std::string& path,
                                   const TensorFile::Entry& entry,
                                   const std::vector<float>& digits,
                                   const Shape& shape) {
  std::vector<int64_t> extents(shape.begin(), shape.end());
  extents.push_back(2);
  const bool pairs = entry.shape == Shape(extents);
  if (!pairs && !(entry.shape == shape)) refuse_shape(path, entry, shape);
  for (const float digit : digits) {
    if (std::abs(digit) <= kDigit && digit == std::floor(digit)) continue;
    throw DataError("load",
                    path,
                    ": \"",
                    entry.name,
                    "\" holds ",
                    digit,
                    ", expected a whole number of at most 2^24");
  }
  std::vector<int64_t> values;
  for (size_t i = 0; i < digits.size(); i += pairs ? 2 : 1) {
    const auto high = static_cast<int64_t>(pairs ? digits[i + 1] : 0.0f);
    values.push_back(static_cast<int64_t>(digits[i]) + high * (int64_t{1} << 24));
  }
  return values;
}

std::vector<int64_t> integers_of(const std::string& path,
                                 const TensorFile& file,
                                 const TensorFile::Entry& entry,
                                 const IntegerBuffer& own) {
  std::vector<int64_t> values;
  if (entry.dtype == DType::kF32) {
    values = whole_numbers(path, entry, file.values<float>(entry.name), own.shape());
  } else {
    if (entry.dtype != DType::kI64) refuse_type(path, entry, DType::kI64);
    if (!(entry.shape == own.shape())) refuse_shape(path, entry, own.shape());
    values = file.values<int64_t>(entry.name);
  }
  own.check(values, "load", path + ": \"" + entry.name + '"');
  return values;
}

}  // namespace

void add_state(TensorFile& file, std::span<const NamedState> state) {
  for (const NamedState& entry : state) {
    const std::span<const uint8_t> bytes = entry.bytes();
    file.add({entry.name,
              entry.holds_integers() ? DType::kI64 : DType::kF32,
              entry.shape(),
              {bytes.begin(), bytes.end()}});
  }
}

void save_parameters(const std::string& path,
                     std::span<const NamedState> state,
                     const std::map<std::string, std::string>& metadata) {
  TensorFile file;
  set_format(file, kFormat, kVersion);
  for (const auto& [key, value] : metadata) {
    if (!file.metadata.emplace(key, value).second) {
      throw DataError("save", path, ": \"", key, "\" is reserved for the file");
    }
  }
  add_state(file, state);
  save_safetensors(path, file);
}

void load_parameters(const std::string& path, std::span<const NamedState> state) {
  load_parameters(path, load_safetensors(path), state);
}

void load_parameters(const std::string& path,
                     const TensorFile& file,
                     std::span<const NamedState> state) {
  check_format(path, file, kFormat, kVersion);
  load_state(path, file, state);
}

void load_state(const std::string& path,
                const TensorFile& file,
                std::span<const NamedState> state) {
  std::vector<const TensorFile::Entry*> sources;
  std::vector<std::vector<int64_t>> integers;  // of each entry; empty if it holds floats
  for (const NamedState& own : state) {
    if (!file.contains(own.name)) {
      throw DataError("load",
                      path,
                      ": lacks \"",
                      own.name,
                      "\": it was saved from another network, or by an older version");
    }
    const TensorFile::Entry& entry = file.at(own.name);
    sources.push_back(&entry);
    integers.emplace_back();
    if (own.holds_integers()) {
      integers.back() = integers_of(path, file, entry, own.integers);
      if (own.constant) check_constant(path, own, integers.back());
      continue;
    }
    if (entry.dtype != DType::kF32) refuse_type(path, entry, DType::kF32);
    if (!(entry.shape == own.shape())) refuse_shape(path, entry, own.shape());
    if (own.tensor.kind() != ValueKind::kFloat)
      throw DataError("load", "\"", own.name, "\" does not hold floats");
    if (own.constant) check_constant(path, own, file.values<float>(own.name));
  }
  for (const TensorFile::Entry& entry : file.entries()) {
    const bool wanted = std::find(sources.begin(), sources.end(), &entry) != sources.end();
    if (!wanted)
      throw DataError("load", path, ": has \"", entry.name, "\", but no tensor here has this name");
  }
  for (size_t i = 0; i < state.size(); ++i) {
    if (state[i].constant) continue;
    if (state[i].holds_integers()) {
      IntegerBuffer own = state[i].integers;
      own.set(integers[i]);
    } else {
      Tensor own = state[i].tensor;
      std::copy(sources[i]->bytes.begin(),
                sources[i]->bytes.end(),
                reinterpret_cast<uint8_t*>(own.mutable_data()));
    }
  }
}

}  // namespace quantrain
