#include "framework/autograd/named_state.hpp"

#include <algorithm>

#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"

namespace quantrain {

std::span<const uint8_t> NamedState::bytes() const& {
  if (holds_integers()) {
    const std::span<const int64_t> values = integers.values();
    return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
  }
  const float* const values = tensor.data();
  return {reinterpret_cast<const uint8_t*>(values),
          static_cast<size_t>(tensor.elements()) * sizeof(float)};
}

void NamedState::check_values(const NamedState& from, std::string_view where) const {
  const auto describe = [](const NamedState& entry) {
    TextStream text;
    text << (entry.holds_integers() ? "integers " : "floats ") << entry.shape();
    return text.str();
  };
  if (holds_integers() != from.holds_integers() || !(shape() == from.shape()))
    throw ShapeError(where, '"', name, "\" has ", describe(from), ", the target ", describe(*this));
  if (holds_integers()) integers.check(from.integers.values(), where, name);
}

void NamedState::copy_values(const NamedState& from) {
  check_values(from, "state");
  if (holds_integers()) {
    integers.set(from.integers.values());
  } else {
    std::copy_n(from.tensor.data(), tensor.elements(), tensor.mutable_data());
  }
}

NamedState NamedState::copy() const {
  NamedState result = holds_integers() ? NamedState(name, IntegerBuffer(shape()))
                                       : NamedState(name, Tensor::empty(shape()));
  result.copy_values(*this);
  return result;
}

}  // namespace quantrain
