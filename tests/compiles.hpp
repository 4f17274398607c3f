#pragma once

#include <type_traits>

/// Whether an expression of `temporary()`, a value of this type without a name, compiles.
#define QUANTRAIN_COMPILES(type, expression)          \
  ([]<class T>(std::type_identity<T>) {               \
    return requires(T(*temporary)()) { expression; }; \
  }(std::type_identity<type>{}))
