#include "layers/members.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/core/error.hpp"

namespace quantrain {

void MemberWriter::operator()(const char* name, const Size2d& value) {
  members_.options.add(name, std::vector<int64_t>{value.h, value.w});
}

void MemberWriter::operator()(const char* name, const std::vector<int64_t>& value) {
  members_.options.add(name, value);
}

void MemberWriter::operator()(const char* name, const std::vector<int>& value) {
  members_.options.add(name, std::vector<int64_t>(value.begin(), value.end()));
}

void MemberWriter::operator()(const char* name, const std::optional<int64_t>& value) {
  if (value) (*this)(name, *value);
}

void MemberWriter::operator()(const char* name, const Tensor& value) {
  if (value.defined()) members_.state.emplace_back(name, value);
}

void MemberWriter::operator()(const char* name, const IntegerBuffer& value) {
  if (value.defined()) members_.state.emplace_back(name, value);
}

void MemberReader::refuse(const char* name, const char* expected) const {
  throw DataError(type_, "the member \"", name, "\" is ", expected);
}

const Attribute* MemberReader::find(const char* name) {
  read_.insert(name);
  for (const auto& [key, value] : members_.options) {
    if (key == name) return &value;
  }
  return nullptr;
}

const NamedState* MemberReader::find_state(const char* name) {
  read_.insert(name);
  const auto found = std::find_if(members_.state.begin(),
                                  members_.state.end(),
                                  [&](const NamedState& entry) { return entry.name == name; });
  return found == members_.state.end() ? nullptr : &*found;
}

template <class T>
const T& MemberReader::get(const char* name, const char* expected) {
  const Attribute* const found = find(name);
  if (found == nullptr) refuse(name, "missing");
  const T* const value = std::get_if<T>(found);
  if (value == nullptr) refuse(name, expected);
  return *value;
}

int64_t MemberReader::integer(const char* name, int64_t lo, int64_t hi) {
  const auto value = get<int64_t>(name, "not a whole number");
  if (value < lo || value > hi) {
    throw DataError(
        type_, "the member \"", name, "\" is ", value, ", outside of [", lo, ", ", hi, ']');
  }
  return value;
}

void MemberReader::operator()(const char* name, int64_t& value) {
  value = get<int64_t>(name, "not a whole number");
}

void MemberReader::operator()(const char* name, int& value) {
  value = static_cast<int>(
      integer(name, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
}

void MemberReader::operator()(const char* name, bool& value) { value = integer(name, 0, 1) == 1; }

void MemberReader::operator()(const char* name, float& value) {
  const auto number = get<double>(name, "not a number");
  // Beyond this bound, rounding to float32 would give an infinity.
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (std::isfinite(number) && std::abs(number) > kLargest) refuse(name, "too large for float32");
  value = static_cast<float>(number);
}

void MemberReader::operator()(const char* name, std::string& value) {
  value = get<std::string>(name, "not a text");
}

void MemberReader::operator()(const char* name, Size2d& value) {
  const auto& list = get<std::vector<int64_t>>(name, "not a list of two numbers");
  if (list.size() != 2) refuse(name, "not a list of two numbers");
  value = {list[0], list[1]};
}

void MemberReader::operator()(const char* name, std::vector<int64_t>& value) {
  value = get<std::vector<int64_t>>(name, "not a list of whole numbers");
}

void MemberReader::operator()(const char* name, std::vector<int>& value) {
  value.clear();
  for (const int64_t entry : get<std::vector<int64_t>>(name, "not a list of whole numbers")) {
    if (entry < std::numeric_limits<int>::min() || entry > std::numeric_limits<int>::max())
      refuse(name, "a list with a number that is out of range");
    value.push_back(static_cast<int>(entry));
  }
}

void MemberReader::operator()(const char* name, std::optional<int64_t>& value) {
  value.reset();
  if (find(name) != nullptr) value = get<int64_t>(name, "not a whole number");
}

void MemberReader::operator()(const char* name, Tensor& value) {
  const NamedState* const found = find_state(name);
  if (found == nullptr) return;
  if (found->holds_integers()) refuse(name, "integers, expected floats");
  value = found->tensor;
}

void MemberReader::operator()(const char* name, IntegerBuffer& value) {
  const NamedState* const found = find_state(name);
  if (found == nullptr) return;
  if (!found->holds_integers()) refuse(name, "floats, expected integers");
  value = found->integers;
}

void MemberReader::finish() const {
  for (const auto& [name, value] : members_.options) {
    if (read_.count(name) == 0) refuse(name.c_str(), "unknown");
  }
  for (const NamedState& entry : members_.state) {
    if (read_.count(entry.name) == 0) refuse(entry.name.c_str(), "unknown");
  }
}

}  // namespace quantrain
