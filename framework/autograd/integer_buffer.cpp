#include "framework/autograd/integer_buffer.hpp"

#include <algorithm>

#include "framework/core/error.hpp"

namespace quantrain {

IntegerBuffer::IntegerBuffer(const Shape& shape, const IntegerOptions& options)
    : data_(std::make_shared<Data>(
          Data{shape,
               options.least,
               options.most,
               std::vector<int64_t>(static_cast<size_t>(shape.elements()), options.value)})) {
  check(data_->values, "integers", "the buffer");
}

void IntegerBuffer::Data::check(int64_t value,
                                size_t i,
                                std::string_view where,
                                std::string_view name) const {
  if (value >= least && value <= most) return;
  throw DataError(where, name, " holds ", value, " at ", i, ", expected ", least, " to ", most);
}

IntegerBuffer::Data& IntegerBuffer::data() const {
  if (data_ == nullptr) throw GraphError("integers", "the buffer is undefined");
  return *data_;
}

const Shape& IntegerBuffer::shape() const& { return data().shape; }
std::span<const int64_t> IntegerBuffer::values() const& { return data().values; }

int64_t IntegerBuffer::item() const {
  if (data().values.size() != 1)
    throw ShapeError("integers", "item() needs a single value, got shape ", shape());
  return data_->values[0];
}

void IntegerBuffer::check(std::span<const int64_t> values,
                          std::string_view where,
                          std::string_view name) const {
  const Data& own = data();
  if (values.size() != own.values.size())
    throw ShapeError(where, name, ": ", values.size(), " values do not fill shape ", own.shape);
  for (size_t i = 0; i < values.size(); ++i) own.check(values[i], i, where, name);
}

void IntegerBuffer::set(std::span<const int64_t> values) {
  check(values, "integers", "the buffer");
  std::copy(values.begin(), values.end(), data_->values.begin());
}

void IntegerBuffer::fill(int64_t value) {
  data().check(value, 0, "integers", "the buffer");
  std::fill(data_->values.begin(), data_->values.end(), value);
}

}  // namespace quantrain
