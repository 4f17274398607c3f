#pragma once

#include <iterator>

#include "framework/core/cpu.hpp"
#include "framework/core/error.hpp"

namespace quantrain::kernels {

/// The kernel tables of one kind (float or integer), by instruction set.
template <class Table>
class Tables {
 public:
  constexpr void set(Isa isa, const Table& table) { of_[static_cast<int>(isa)] = &table; }
  const Table& at(Isa isa) const {
    const Table* const table = of_[static_cast<int>(isa)];
    if (table == nullptr) throw DataError("isa", isa_name(isa), " is not built into this library");
    return *table;
  }
  const Table& chosen() const { return *of_[static_cast<int>(chosen_isa())]; }

 private:
  const Table* of_[std::size(kAllIsas)] = {};  // null if the set is not built
};

}  // namespace quantrain::kernels
