#include "framework/integer/view.hpp"

#include <cstring>

#include "framework/integer/sizes.hpp"

namespace quantrain::integer {

void View::validate(std::string_view where) const { check_size(where, {size}); }

void Prepared<View>::run(int64_t n, Inputs inputs, void* output) const {
  if (n > 0 && output != inputs[0])
    std::memcpy(output, inputs[0], static_cast<size_t>(n * op_->size));
}

}  // namespace quantrain::integer
